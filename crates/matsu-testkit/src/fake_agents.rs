//! Scripted command lines: agents whose message is a shell script. A test says in the message itself what the program
//! shall do: print its arguments, sleep, leave grandchildren behind, flood, ask, or print a vendor's stream.

use std::io;
use std::path::Path;

/// Names of the agents and their definitions.
pub const DEFINITIONS: &[(&str, &str)] = &[
    (
        "script",
        r#"
name = "script"
command = "/bin/sh"
args = ["{prompt_file}"]
prompt = "file"
output = "text"
allow_args = ["--fast", "--level="]
allow_env = ["GOOD", "LD_PRELOAD", "ld_preload", "X_BASE_URL"]
inherit = ["SECRET_KEY"]

[session]
choose = true
start = { args = ["new", "{session}"] }
resume = { args = ["resume", "{session}"] }

[system_prompt]
env = { SYSTEM_FILE = "{system_file}" }

[model]
args = ["--model", "{model}"]

[quota]
patterns = ["usage limit"]
"#,
    ),
    (
        "cat",
        "name = \"cat\"\ncommand = \"/bin/cat\"\nprompt = \"stdin\"\noutput = \"text\"\nversion = [\"--version\"]\n",
    ),
    (
        "other",
        "name = \"other\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"text\"\n\
         [session]\nchoose = true\nresume = { args = [\"resume\", \"{session}\"] }\n\
         [connect_back]\nenv = { MATSU = \"{matsu}\", DATA = \"{data_dir}\" }\n",
    ),
    (
        "events",
        "name = \"events\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"events\"\n\
         [session]\nresume = { args = [\"resume\", \"{session}\"] }\n[quota]\npatterns = [\"usage limit\"]\n",
    ),
    (
        "claudish",
        "name = \"claudish\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"claude\"\n",
    ),
    // Three that find their way back: one that may report, one that must, one with few tools.
    (
        "back",
        "name = \"back\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"text\"\n\
         go_on = \"echo went on: $1\"\n\
         [session]\nchoose = true\nresume = { args = [\"resume\", \"{session}\"] }\n\
         [connect_back]\nenv = { MATSU = \"{matsu}\", DATA = \"{data_dir}\" }\n",
    ),
    (
        "reporter",
        "name = \"reporter\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"text\"\n\
         [connect_back]\nreport = \"required\"\nenv = { MATSU = \"{matsu}\", DATA = \"{data_dir}\" }\n",
    ),
    (
        "narrow",
        "name = \"narrow\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\noutput = \"text\"\n\
         [connect_back]\ngrants = \"list_agents\"\nenv = { MATSU = \"{matsu}\", DATA = \"{data_dir}\" }\n",
    ),
    ("absent", "name = \"absent\"\ncommand = \"matsu-no-such-program\"\nprompt = \"stdin\"\noutput = \"text\"\n"),
];

/// Writes all of them into a folder of definitions.
///
/// # Errors
/// The folder cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    DEFINITIONS.iter().try_for_each(|(name, text)| std::fs::write(folder.join(format!("{name}.toml")), text))
}
