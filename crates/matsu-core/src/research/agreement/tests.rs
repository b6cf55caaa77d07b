//! What supports a claim and what does not, in the languages that are compared.

use super::*;

#[test]
fn another_number_or_a_denial_is_no_support() {
    let table = [
        ("The Eiffel Tower is 330 m high.", "The Eiffel Tower is 201 m high.", false),
        ("The Eiffel Tower is 330 m high.", "At 330 m the Eiffel Tower is the highest building of Paris.", true),
        ("Aspirin lowers the risk by 30 %.", "Aspirin lowers the risk by 3 %.", false),
        ("Long polling reduces token use.", "Long polling does not reduce token use.", false),
        ("Long polling reduces token use.", "It isn't new. Long polling reduces token use by half.", true),
        ("Long polling doesn't lose jobs.", "Jobs are not lost with long polling.", true),
        ("待ち行列は仕事を失いません。", "待ち行列は仕事を失う。", false),
        ("It began in 1990.", "It began in the nineties.", false),
        ("The tank holds 500 litres.", "The tank holds 500 gallons.", false),
        ("The tank holds 500 litres.", "The tank of the ship holds 500 l of water.", true),
        ("The rate rose by 1,000 percent.", "The rate rose by 1000 % in a year.", true),
        ("It takes 3.5 seconds.", "It takes 35 seconds.", false),
        ("It opened on 12 March 1990.", "It opened on 12 May 1990.", false),
        ("It opened on 12 March 1990.", "On March 12, 1990 it opened to visitors.", true),
        ("The capital of France is Paris.", "The capital of France is Lyon.", false),
        ("Lyon is the largest city.", "Paris is the largest city.", false),
        ("The capital of France is Paris.", "Paris has been the capital of France for centuries.", true),
        ("Der Turm steht in Paris.", "In Paris steht der Turm seit langem.", true),
        ("東京タワーの高さは333メートルです。", "東京タワーの高さは333フィートです。", false),
        ("カルシウムは骨を強くする。", "マグネシウムは骨を強くする。", false),
    ];
    for (claim, passage, expected) in table {
        assert_eq!(can_support(claim, passage), expected, "{claim} / {passage}");
    }
}

#[test]
fn statements_are_the_same_only_if_their_facts_are() {
    let table = [
        ("Pods are evicted after five minutes.", "Pods are evicted after five minutes!", true),
        ("Pods are evicted after 5 minutes.", "Pods are evicted after 6 minutes.", false),
        ("Pods are evicted.", "Pods are not evicted.", false),
        ("Pods are evicted after a while.", "Nodes are drained before an upgrade.", false),
    ];
    for (left, right, expected) in table {
        assert_eq!(Statement::of(left).is_same(&Statement::of(right)), expected, "{left} / {right}");
    }
}

#[test]
fn the_closest_sentence_is_quoted_as_it_stands() {
    let passage = "Bears sleep in winter. A bear eats berries and fish. It is large.";
    assert_eq!(closest_sentence("Bears eat fish and berries.", passage), "A bear eats berries and fish.");
    assert_eq!(closest_sentence("Anything.", "no mark"), "no mark");
    assert_eq!(closest_sentence("A bear eats.", "- A bear eats fish.\n- A cow eats grass."), "A bear eats fish.");
}

/// Pairs of a claim and a passage that no table of words was made from.
const PARAPHRASES: &[(&str, &str)] = &[
    ("Five hundred people died in the flood.", "500 people died in the flood of that night."),
    ("The bridge cost 2.5 million dollars.", "Building the bridge cost $2,500,000 in all."),
    ("The lake is twenty-five metres deep.", "At its deepest point the lake is 25 m deep."),
    ("The Eiffel Tower is 330 m high.", "The Eiffel Tower stands in Paris. It is 330 m high."),
    (
        "Marie Curie won two Nobel Prizes.",
        "Marie Curie was born in Warsaw. She won two Nobel Prizes, in physics and chemistry.",
    ),
    ("Bears sleep through the winter.", "Bears sleep through most of the winter and wake up in spring."),
    ("Researchers developed the vaccine in 1990.", "Scientists developed the vaccine in 1990 in a small laboratory."),
    ("There is no evidence that the herb helps.", "Evidence that the herb helps was not found."),
    ("The queue holds about 3,000 jobs.", "About three thousand jobs fit into the queue."),
    ("Der See ist fünfundzwanzig Meter tief.", "An seiner tiefsten Stelle ist der See 25 Meter tief."),
    ("Das Stadion hat 80.000 Plätze.", "Das Stadion hat heute 80000 Plätze und ein Dach."),
    ("Der Fonds verwaltet 3 Milliarden Euro.", "Insgesamt verwaltet der Fonds 3 Mrd. Euro für die Stadt."),
    ("Der Turm steht in Paris.", "Das Gebäude steht in Paris."),
    (
        "Newton entwickelte die Theorie der Gravitation.",
        "Isaac Newton entwickelte die Theorie der Gravitation und die Optik.",
    ),
    ("Es gibt keinen Beleg für diese Wirkung.", "Belege für diese Wirkung gibt es nicht."),
    ("Le pont mesure trois cents mètres.", "Le pont mesure 300 mètres et relie les deux rives."),
    ("Le médicament ne réduit pas le risque.", "Le risque n'est en aucun cas réduit par le médicament."),
    ("Le musée compte 10 000 œuvres.", "Le musée compte plus de 10 000 œuvres dans ses salles."),
    ("El puente mide treinta y cinco metros.", "El puente mide 35 metros de largo y es de piedra."),
    ("El servidor no guarda los mensajes.", "Los mensajes nunca se guardan en el servidor."),
    ("La ciudad tiene dos millones de habitantes.", "La ciudad tiene 2 millones de habitantes y un puerto."),
    ("塔の高さは333メートルである。", "塔の高さは三百三十三メートルで、赤く塗られている。"),
    ("この薬は効果がない。", "この薬には効果が認められなかった。"),
    ("必ず再起動する必要がある。", "更新の後は再起動する必要がある。"),
    ("予算は3億5000万円である。", "今年の予算は三億五千万円である。"),
    ("人口は少ない町である。", "この町の人口は少ない。"),
    ("塔高五百米。", "这座塔高500米，是全国最高的建筑。"),
    ("人口增长了百分之五。", "去年人口增长了5%。"),
    ("这种药物没有效果。", "研究发现这种药物并没有效果。"),
    ("城市不断发展。", "这座城市正在发展。"),
    ("이 다리의 길이는 500미터이다.", "이 다리의 길이는 오백 미터이고 강을 건넌다."),
    ("서버는 메시지를 저장하지 않는다.", "메시지는 서버에 저장되지 않는다."),
    ("The cache keeps pages for an hour.", "The cache keeps pages for an hour but does not keep cookies."),
    (
        "The library is open on Sunday.",
        "In winter the library, not the museum beside it; the library is open on Sunday.",
    ),
    (
        "Kaufman and Hart wrote the play.",
        "The play was written by Kaufman and Hart, and opened in New York at the Music Box.",
    ),
    ("Der Rat lehnte das Gesetz ab.", "Der Rat stimmte nicht zu, sondern der Rat lehnte das Gesetz ab."),
    ("이 방법은 안전하다.", "이 방법은 매우 안전하다고 알려져 있다."),
];

const CONTRADICTIONS: &[(&str, &str)] = &[
    ("Five people died in the flood.", "Six people died in the flood."),
    ("The bridge cost 2 million dollars.", "The bridge cost 2 billion dollars."),
    ("The ticket costs $500.", "The ticket costs €500."),
    ("The ticket costs 500 pounds.", "The ticket costs 500 yen."),
    ("The tower is 330 m high.", "The tower is 201 m high. The mast on the hill is 330 m high."),
    ("Newton developed the theory of gravity.", "Leibniz developed the theory of gravity."),
    ("Aspirin lowers the risk of a stroke.", "Ibuprofen lowers the risk of a stroke."),
    ("The herb helps against a cold.", "There is no evidence that the herb helps against a cold."),
    ("Pods survive a restart of the node.", "None of the pods survive a restart of the node."),
    ("The temperature fell to 5 degrees.", "The temperature fell to -5 degrees."),
    ("Fünf Menschen starben bei der Flut und es war Nacht.", "Sechs Menschen starben bei der Flut und es war Nacht."),
    ("Der Turm steht in Paris.", "Der Turm steht in Lyon."),
    ("Newton entwickelte die Theorie der Gravitation.", "Leibniz entwickelte die Theorie der Gravitation."),
    ("Das Mittel senkt das Risiko der Patienten.", "Das Mittel senkt bei keinem der Patienten das Risiko."),
    ("Das Projekt kostet 3 Millionen Euro.", "Das Projekt kostet 3 Milliarden Euro."),
    ("Le médicament réduit le risque.", "Le médicament n'a aucun effet qui réduit le risque."),
    ("Le pont mesure trois cents mètres.", "Le pont mesure quatre cents mètres."),
    ("Le projet coûte 5 millions d'euros.", "Le projet coûte 5 milliards d'euros."),
    ("El servidor guarda los mensajes.", "El servidor no guarda los mensajes."),
    ("El puente mide treinta metros.", "El puente mide cuarenta metros."),
    ("La torre está en Madrid.", "La torre está en Sevilla."),
    ("塔の高さは三百メートルである。", "塔の高さは四百メートルである。"),
    ("東京は日本の首都である。", "大阪は日本の首都である。"),
    ("この薬は効果がある。", "この薬は効果がない。"),
    ("予算は3億円である。", "予算は3万円である。"),
    ("彼は眠って働いた。", "彼は眠らずに働いた。"),
    ("巴黎是法国的首都。", "里昂是法国的首都。"),
    ("首都是巴黎。", "首都是里昂。"),
    ("这种药物有效果。", "这种药物没有效果。"),
    ("人口增长了百分之五。", "人口增长了百分之六。"),
    ("该项目耗资500万美元。", "该项目耗资500亿美元。"),
    ("DaemonSet pods are evicted.", "Pods are evicted after a while, but DaemonSet pods are not."),
    ("파리는 프랑스의 수도이다.", "리옹은 프랑스의 수도이다."),
    ("서버는 메시지를 저장한다.", "서버는 메시지를 저장하지 않는다."),
    ("다섯 명이 다쳤다.", "여섯 명이 다쳤다."),
    ("예산은 3억 원이다.", "예산은 3만 원이다."),
    ("회원은 열두 명이다.", "회원은 스무 명이다."),
];

#[test]
fn a_paraphrase_supports_in_every_language() {
    let refused: Vec<_> = PARAPHRASES.iter().filter(|(claim, passage)| !can_support(claim, passage)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn another_number_name_currency_or_a_denial_supports_in_no_language() {
    let accepted: Vec<_> = CONTRADICTIONS.iter().filter(|(claim, passage)| can_support(claim, passage)).collect();
    assert!(accepted.is_empty(), "{accepted:#?}");
}

#[test]
fn long_statements_that_differ_in_one_word_are_not_the_same() {
    let long = "In the spring of that year the council of the old town decided after a long debate in the hall that";
    let german = "Im Frühjahr jenes Jahres beschloss der Rat der alten Stadt nach einer langen Debatte im Saal, dass";
    let chinese = "那一年的春天，这座古老城市的议会在大厅里经过长时间的辩论之后终于作出了一项重要的决定，同意由";
    let pairs = [
        (format!("{long} five bridges would be built."), format!("{long} six bridges would be built.")),
        (format!("{long} it costs 5 million."), format!("{long} it costs 5 billion.")),
        (format!("{long} it grew from 5 to 10."), format!("{long} it grew from 10 to 5.")),
        (format!("{long} taxes would increase."), format!("{long} taxes would decrease.")),
        (format!("{long} there is a risk."), format!("{long} there is no risk.")),
        (format!("{german} man nach Lyon reist."), format!("{german} man nach Paris reist.")),
        (format!("{chinese}巴黎承办大会。"), format!("{chinese}里昂承办大会。")),
    ];
    for (left, right) in &pairs {
        assert!(!Statement::of(left).is_same(&Statement::of(right)), "{left} / {right}");
    }
    for (left, right) in [
        (format!("{long} five bridges would be built."), format!("{long} 5 bridges would be built.")),
        (format!("{long} bridges would be built."), format!("{long} the bridges would be built there.")),
        (format!("{german} man nach Lyon reist."), format!("{german} man bald nach Lyon reist.")),
        (format!("{chinese}巴黎承办大会。"), format!("{chinese}巴黎承办这次大会。")),
    ] {
        assert!(Statement::of(&left).is_same(&Statement::of(&right)), "{left} / {right}");
    }
}
