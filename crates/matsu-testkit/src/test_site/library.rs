//! The library: pages about a few topics in four languages. Site and number decide what a page says, so every run sees
//! the same web. Even sites say what the topic's statement says, odd ones deny it.

/// Pages about one topic in one language on one site.
pub const PAGES_PER_TOPIC: usize = 12;

pub const LANGUAGES: [&str; 4] = ["en", "ja", "ko", "de"];

/// A topic: its word in addresses, and for each language its name, a statement, its denial, and sentences around them.
pub struct Topic {
    pub slug: &'static str,
    pub words: [Words; 4],
}

pub struct Words {
    pub name: &'static str,
    pub statement: &'static str,
    pub denial: &'static str,
    pub around: &'static [&'static str],
}

const POLLING_EN: &[&str] = &[
    "Long polling keeps a request open until the server has something to say.",
    "A client that asks every three seconds makes six hundred calls in half an hour.",
    "Engineers measured the difference on a small machine with two cores.",
    "The request is answered at once when a job ends, and after the limit when none does.",
    "Every call that returns without news still costs its share of the context.",
    "The effect grows with the number of jobs that run at the same time.",
];
const TEA_EN: &[&str] = &[
    "Green tea is made from leaves that were steamed or heated soon after picking.",
    "The trial followed two hundred adults for twelve weeks.",
    "Participants drank three cups a day and kept a diary of their sleep.",
    "The authors report no conflict of interest.",
    "Earlier studies had looked at extracts rather than at the drink itself.",
    "Doses above that range were not part of the study.",
];
const QUEUE_EN: &[&str] = &[
    "A queue that is kept in a database survives a crash of the process that reads it.",
    "Workers take a lease on a job and prove it with every write.",
    "When a worker dies its jobs are given to another one.",
    "A lease that was lost can no longer change anything.",
    "The test kills the process at random for an hour.",
    "The order of jobs follows their priority and then their age.",
];
const JA: &[&str] = &[
    "サーバーは新しい知らせがあるまで要求を開いたままにします。",
    "三秒ごとに尋ねる利用者は、三十分で六百回呼び出すことになります。",
    "技術者は二つのコアを持つ小さな機械で違いを測りました。",
    "仕事が終わると、要求にはすぐに答えが返ります。",
    "知らせのない呼び出しにも費用がかかります。",
];
const KO: &[&str] = &[
    "서버는 새로운 소식이 있을 때까지 요청을 열어 둡니다.",
    "삼 초마다 묻는 사용자는 삼십 분 동안 육백 번을 호출합니다.",
    "기술자들은 두 개의 코어를 가진 작은 기계에서 차이를 측정했습니다.",
    "작업이 끝나면 요청에 바로 답이 돌아옵니다.",
    "소식이 없는 호출에도 비용이 듭니다.",
];
const DE: &[&str] = &[
    "Der Server hält eine Anfrage offen, bis es etwas Neues gibt.",
    "Wer alle drei Sekunden fragt, ruft in einer halben Stunde sechshundert Mal auf.",
    "Gemessen wurde der Unterschied auf einer kleinen Maschine mit zwei Kernen.",
    "Endet ein Auftrag, so wird die Anfrage sofort beantwortet.",
    "Auch ein Aufruf ohne Neuigkeit kostet seinen Teil.",
];

pub const TOPICS: [Topic; 3] = [
    Topic {
        slug: "long-polling",
        words: [
            Words {
                name: "Long polling and token use",
                statement: "Long polling reduces token use by ninety percent compared with plain polling.",
                denial: "Long polling does not reduce token use compared with plain polling.",
                around: POLLING_EN,
            },
            Words {
                name: "ロングポーリングとトークン消費",
                statement: "ロングポーリングは通常のポーリングに比べてトークン消費を九割減らします。",
                denial: "ロングポーリングは通常のポーリングに比べてトークン消費を減らしません。",
                around: JA,
            },
            Words {
                name: "롱 폴링과 토큰 사용량",
                statement: "롱 폴링은 일반 폴링에 비해 토큰 사용량을 구십 퍼센트 줄입니다.",
                denial: "롱 폴링은 일반 폴링에 비해 토큰 사용량을 줄이지 않습니다.",
                around: KO,
            },
            Words {
                name: "Long Polling und Tokenverbrauch",
                statement: "Long Polling senkt den Tokenverbrauch gegenüber einfachem Polling um neunzig Prozent.",
                denial: "Long Polling senkt den Tokenverbrauch gegenüber einfachem Polling nicht.",
                around: DE,
            },
        ],
    },
    Topic {
        slug: "green-tea",
        words: [
            Words {
                name: "Green tea and blood pressure",
                statement: "Drinking green tea every day lowers systolic blood pressure in adults.",
                denial: "Drinking green tea every day does not lower systolic blood pressure in adults.",
                around: TEA_EN,
            },
            Words {
                name: "緑茶と血圧",
                statement: "緑茶を毎日飲むと成人の収縮期血圧が下がります。",
                denial: "緑茶を毎日飲んでも成人の収縮期血圧は下がりません。",
                around: JA,
            },
            Words {
                name: "녹차와 혈압",
                statement: "녹차를 매일 마시면 성인의 수축기 혈압이 낮아집니다.",
                denial: "녹차를 매일 마셔도 성인의 수축기 혈압은 낮아지지 않습니다.",
                around: KO,
            },
            Words {
                name: "Grüner Tee und Blutdruck",
                statement: "Täglich getrunkener grüner Tee senkt den systolischen Blutdruck von Erwachsenen.",
                denial: "Täglich getrunkener grüner Tee senkt den systolischen Blutdruck von Erwachsenen nicht.",
                around: DE,
            },
        ],
    },
    Topic {
        slug: "durable-queues",
        words: [
            Words {
                name: "Durable queues",
                statement: "A queue with leases loses no job when its worker is killed.",
                denial: "A queue with leases still loses jobs when its worker is killed.",
                around: QUEUE_EN,
            },
            Words {
                name: "永続する待ち行列",
                statement: "貸し出し付きの待ち行列は、作業者が停止しても仕事を失いません。",
                denial: "貸し出し付きの待ち行列でも、作業者が停止すると仕事を失います。",
                around: JA,
            },
            Words {
                name: "지속되는 대기열",
                statement: "임대가 있는 대기열은 작업자가 중단되어도 작업을 잃지 않습니다.",
                denial: "임대가 있는 대기열도 작업자가 중단되면 작업을 잃습니다.",
                around: KO,
            },
            Words {
                name: "Dauerhafte Warteschlangen",
                statement: "Eine Warteschlange mit Pachten verliert keinen Auftrag, wenn ihr Arbeiter stirbt.",
                denial: "Auch eine Warteschlange mit Pachten verliert Aufträge, wenn ihr Arbeiter stirbt.",
                around: DE,
            },
        ],
    },
];

/// One page of the library.
#[derive(Clone, Copy)]
pub struct Page {
    pub site: u8,
    pub language: usize,
    pub topic: usize,
    pub number: usize,
}

impl Page {
    /// `/en/long-polling/3` on a site.
    pub fn at(site: u8, path: &str) -> Option<Self> {
        let mut parts = path.trim_start_matches('/').split('/');
        let (language, topic, number) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let language = LANGUAGES.iter().position(|known| *known == language)?;
        let topic = TOPICS.iter().position(|known| known.slug == topic)?;
        (parts.next().is_none() && number < PAGES_PER_TOPIC).then_some(Self { site, language, topic, number })
    }

    /// All pages of one site.
    pub fn all(site: u8) -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).flat_map(move |language| {
            (0..TOPICS.len())
                .flat_map(move |topic| (0..PAGES_PER_TOPIC).map(move |number| Self { site, language, topic, number }))
        })
    }

    pub fn path(self) -> String {
        format!("/{}/{}/{}", LANGUAGES[self.language], TOPICS[self.topic].slug, self.number)
    }

    fn words(self) -> &'static Words {
        &TOPICS[self.topic].words[self.language]
    }

    pub fn title(self) -> String {
        format!("{} ({})", self.words().name, self.number + 1)
    }

    pub fn lead(self) -> String {
        let words = self.words();
        format!("{} {}", self.position(), words.around[self.number % words.around.len()])
    }

    fn position(self) -> &'static str {
        if self.site.is_multiple_of(2) { self.words().statement } else { self.words().denial }
    }

    /// Paragraphs of the main text; every page turns them another way.
    pub fn paragraphs(self) -> Vec<String> {
        let words = self.words();
        let count = words.around.len();
        (0..3)
            .map(|part| {
                let turned =
                    (0..count).map(|at| words.around[(at * (part + 1) + self.number + usize::from(self.site)) % count]);
                let mut text: Vec<&str> = turned.collect();
                text.dedup();
                if part == 0 {
                    text.insert(0, self.position());
                }
                text.join(if self.language == 1 { "" } else { " " })
            })
            .collect()
    }

    /// The page with everything that pages have around their text.
    pub fn html(self) -> String {
        let words = self.words();
        let links: String = Self::all(self.site)
            .filter(|page| page.language == self.language && page.topic == self.topic && page.number != self.number)
            .map(|page| format!("<li><a href=\"{}\">{}</a></li>", page.path(), page.title()))
            .collect();
        let paragraphs: Vec<String> = self.paragraphs().iter().map(|text| format!("<p>{text}</p>")).collect();
        frame(
            LANGUAGES[self.language],
            &self.title(),
            &format!(
                "<article><h1>{}</h1>{}<h2>{}</h2>{}</article><aside class=\"related\"><h3>More</h3><ul>{links}</ul></aside>",
                self.title(),
                paragraphs[0],
                words.name,
                paragraphs[1..].concat()
            ),
        )
    }
}

/// A page around a body.
pub fn frame(language: &str, title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"{language}\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\
         <header class=\"site-header\"><nav class=\"menu\"><a href=\"/\">Home</a> <a href=\"/index\">All pages</a> \
         <a href=\"/login\">Sign in</a></nav></header><main>{body}</main>\
         <footer class=\"footer\"><p>© The test site. All rights reserved. <a href=\"/privacy\">Privacy policy</a></p></footer>\
         </body></html>"
    )
}

/// The list of everything.
pub fn index(site: u8) -> String {
    let rows: String =
        Page::all(site).map(|page| format!("<li><a href=\"{}\">{}</a></li>", page.path(), page.title())).collect();
    frame("en", "All pages", &format!("<h1>All pages</h1><ul>{rows}</ul>"))
}
