//! Spellings of units, money and months.

use super::super::sentences::is_wide;

/// Spellings of one unit; the first is the unit's name here.
const UNITS: &[&[&str]] = &[
    &["%", "percent", "prozent", "procent", "процентов", "パーセント", "퍼센트", "％"],
    &[
        "m",
        "metre",
        "metres",
        "meter",
        "meters",
        "metern",
        "mètre",
        "mètres",
        "metro",
        "metros",
        "metri",
        "メートル",
        "米",
        "미터",
    ],
    &[
        "km",
        "kilometre",
        "kilometres",
        "kilometer",
        "kilometers",
        "kilometern",
        "kilomètre",
        "kilomètres",
        "kilómetro",
        "kilómetros",
        "quilômetros",
        "chilometri",
        "キロメートル",
        "公里",
        "千米",
        "킬로미터",
    ],
    &[
        "cm",
        "centimetre",
        "centimetres",
        "centimeter",
        "centimeters",
        "zentimeter",
        "centimètres",
        "centímetros",
        "センチメートル",
        "厘米",
        "센티미터",
    ],
    &[
        "mm",
        "millimetre",
        "millimetres",
        "millimeter",
        "millimeters",
        "millimètres",
        "milímetros",
        "ミリメートル",
        "毫米",
        "밀리미터",
    ],
    &["mile", "miles", "meile", "meilen", "マイル", "英里", "마일"],
    &["foot", "feet", "ft", "fuß", "fuss", "フィート", "英尺", "피트"],
    &["inch", "inches", "zoll", "インチ", "英寸", "인치"],
    &[
        "kg",
        "kilo",
        "kilos",
        "kilogram",
        "kilograms",
        "kilogramm",
        "kilogrammes",
        "kilogramos",
        "キログラム",
        "公斤",
        "千克",
        "킬로그램",
    ],
    &["g", "gram", "grams", "gramm", "grammes", "gramos", "グラム", "克", "그램"],
    &["mg", "milligram", "milligrams", "milligramm", "ミリグラム", "毫克", "밀리그램"],
    &["ton", "tons", "tonne", "tonnes", "tonnen", "toneladas", "tonnellate", "トン", "吨", "噸", "톤"],
    &["pound", "pounds", "lb", "lbs", "£", "gbp", "pfund", "ポンド", "英镑", "英鎊", "파운드"],
    &["l", "litre", "litres", "liter", "liters", "litern", "litro", "litros", "litri", "リットル", "升", "리터"],
    &["ml", "millilitre", "millilitres", "milliliter", "milliliters", "毫升"],
    &["gallon", "gallons", "gal"],
    &["ms", "millisecond", "milliseconds", "millisekunden", "ミリ秒", "毫秒"],
    &[
        "s", "sec", "second", "seconds", "sekunde", "sekunden", "seconde", "secondes", "segundo", "segundos",
        "secondi", "秒", "초",
    ],
    &["min", "minute", "minutes", "minuten", "minuto", "minutos", "minuti", "分", "分钟", "分鐘", "분"],
    &[
        "h", "hour", "hours", "stunde", "stunden", "heure", "heures", "hora", "horas", "ore", "uur", "時間", "小时",
        "小時", "시간",
    ],
    &[
        "day", "days", "tag", "tage", "tagen", "jour", "jours", "día", "días", "dias", "giorni", "dagen", "日間", "天",
        "일간",
    ],
    &[
        "week",
        "weeks",
        "woche",
        "wochen",
        "semaine",
        "semaines",
        "semana",
        "semanas",
        "settimane",
        "weken",
        "週間",
        "周",
        "주간",
    ],
    &[
        "month", "months", "monat", "monate", "monaten", "mois", "meses", "mesi", "maanden", "か月", "ヶ月", "个月",
        "個月", "개월",
    ],
    &[
        "year", "years", "jahr", "jahre", "jahren", "an", "ans", "année", "années", "año", "años", "anni", "anos",
        "jaar", "年間", "歳", "岁", "년간",
    ],
    &["byte", "bytes"],
    &["kb", "kilobyte", "kilobytes", "kib"],
    &["mb", "megabyte", "megabytes", "mib"],
    &["gb", "gigabyte", "gigabytes", "gib"],
    &["tb", "terabyte", "terabytes", "tib"],
    &["°c", "celsius", "℃", "摄氏度", "攝氏度"],
    &["°f", "fahrenheit", "℉", "华氏度"],
    &["hz", "hertz"],
    &["khz"],
    &["mhz"],
    &["ghz"],
    &["w", "watt", "watts"],
    &["kw", "kilowatt", "kilowatts"],
    &["mw", "megawatt", "megawatts"],
    &["dollar", "dollars", "usd", "$", "dólares", "dollari", "ドル", "美元", "美金", "달러"],
    &["euro", "euros", "eur", "€", "ユーロ", "欧元", "歐元", "유로"],
    &["yen", "円", "jpy", "日元", "日圆", "엔"],
    &["yuan", "cny", "rmb", "元", "人民币", "人民幣", "위안"],
    &["won", "krw", "₩", "원", "ウォン", "韩元"],
    &["rupee", "rupees", "inr", "₹", "ルピー", "卢比", "루피"],
    &["franc", "francs", "chf", "franken"],
    &["rouble", "roubles", "ruble", "rubles", "rub", "₽", "рублей", "рубля", "rubel"],
];

/// Months by their number; each in the languages whose dates are most often met.
const MONTHS: [&[&str]; 12] = [
    &["january", "jan", "januar", "janvier", "enero", "gennaio", "janeiro"],
    &["february", "feb", "februar", "février", "febrero", "febbraio", "fevereiro"],
    &["march", "mar", "märz", "mars", "marzo", "março"],
    &["april", "apr", "avril", "abril", "aprile"],
    &["may", "mai", "mayo", "maggio", "maio"],
    &["june", "jun", "juni", "juin", "junio", "giugno", "junho"],
    &["july", "jul", "juli", "juillet", "julio", "luglio", "julho"],
    &["august", "aug", "août", "agosto"],
    &["september", "sep", "sept", "septembre", "septiembre", "settembre", "setembro"],
    &["october", "oct", "oktober", "okt", "octobre", "octubre", "ottobre", "outubro"],
    &["november", "nov", "novembre", "noviembre", "novembro"],
    &["december", "dec", "dezember", "dez", "décembre", "diciembre", "dicembre", "dezembro"],
];

/// The name of the unit that a token is. Of units in scripts without spaces the longest that the token begins with.
#[must_use]
pub fn unit(token: &str) -> Option<&'static str> {
    let is_wide_token = token.chars().next().is_some_and(is_wide);
    let length = |spelling: &str| -> Option<usize> {
        let is_longer = is_wide_token && spelling.chars().all(is_wide) && token.starts_with(spelling);
        (spelling == token || is_longer).then_some(spelling.len())
    };
    let spelled = UNITS.iter().filter_map(|unit| Some((unit.iter().filter_map(|one| length(one)).max()?, unit[0])));
    spelled.max_by_key(|(length, _)| *length).map(|(_, name)| name)
}

/// The currency of a sign that stands before a number. One sign has two currencies: in Chinese texts it is the yuan.
#[must_use]
pub fn money(sign: char, is_chinese: bool) -> Option<&'static str> {
    match sign {
        '¥' if is_chinese => unit("元"),
        '¥' => unit("円"),
        '$' | '€' | '£' | '₩' | '₹' => unit(&sign.to_string()),
        _ => None,
    }
}

/// The number of a month, from 1.
#[must_use]
pub fn month(folded: &str) -> Option<usize> {
    MONTHS.iter().position(|names| names.contains(&folded)).map(|at| at + 1)
}
