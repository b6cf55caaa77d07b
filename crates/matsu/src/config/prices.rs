//! Prices in the configuration: one section `prices.NAME` for each model or agent.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use matsu_core::usage::Price;

use super::providers::Field;

pub const FIELDS: &[Field] = &[
    Field { name: "input", meaning: "dollars for a million tokens that the model reads" },
    Field { name: "output", meaning: "dollars for a million tokens that the model writes" },
];

/// Takes `NAME.FIELD` of the file into its section. A name may have dots.
pub fn take(prices: &mut BTreeMap<String, Price>, dotted: &str, value: &str, file: &Path) -> Result<()> {
    let Some((name, field)) = dotted.rsplit_once('.').filter(|(name, _)| !name.is_empty()) else {
        bail!("{}: prices.{dotted} must be a section, [prices.{dotted:?}]", file.display());
    };
    let wrong = || format!("{}: prices.{name}.{field} must be a number of dollars, got {value:?}", file.display());
    let dollars: f64 = value.parse().with_context(wrong)?;
    if !(0.0..1e6).contains(&dollars) {
        bail!(wrong());
    }
    let price = prices.entry(name.to_owned()).or_default();
    match field {
        "input" => price.input = dollars,
        "output" => price.output = dollars,
        _ => bail!("{}: prices.{name} has no {field}; it has input and output", file.display()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_read_whole_or_refused_with_its_name() {
        let (mut prices, file) = (BTreeMap::new(), Path::new("config.toml"));
        take(&mut prices, "gpt-5.1.input", "1.25", file).unwrap();
        take(&mut prices, "gpt-5.1.output", "10", file).unwrap();
        assert_eq!(prices["gpt-5.1"], Price { input: 1.25, output: 10.0 });
        for (name, value) in
            [("input", "1"), ("x.inputs", "1"), ("x.input", "much"), ("x.input", "-1"), ("x.input", "NaN")]
        {
            let refused = take(&mut prices, name, value, file).unwrap_err().to_string();
            assert!(refused.contains("prices."), "{refused}");
        }
    }
}
