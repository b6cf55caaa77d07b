//! A vendor: one configuration, one wire format, one HTTP client.

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::history::{Maker, validate};
use matsu_core::ports::provider::{
    ModelLimits, ModelRequest, ModelStream, Price, Provider, ProviderError, ProviderFault,
};

use super::config::{KeySource, ProviderConfig};
use super::exchange::Exchange;
use super::http;
use super::wire::Wire;

pub struct Vendor {
    config: ProviderConfig,
    wire: &'static dyn Wire,
    exchange: Exchange,
}

impl Vendor {
    pub fn new(config: ProviderConfig, wire: &'static dyn Wire, clock: Clock) -> Result<Self, String> {
        let base = config.base_url.clone().unwrap_or_else(|| wire.base_url().to_owned());
        let url = format!("{}{}", base.trim_end_matches('/'), wire.path(&config.model));
        let url =
            reqwest::Url::parse(&url).map_err(|error| format!("base_url {base:?} is not a valid address: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("base_url must not contain a password; set the key with key_env or key_file".to_owned());
        }
        let client = http::client(url.as_str())?;
        Ok(Self { exchange: Exchange { client, url, clock }, config, wire })
    }

    fn fails(&self, fault: ProviderFault, message: String) -> ProviderError {
        ProviderError { provider: self.config.name.clone(), fault, message }
    }

    fn check_key(&self) -> Result<(), ProviderError> {
        let message = match (&self.config.key, &self.config.key_source) {
            (Some(_), _) | (None, KeySource::Nowhere) => return Ok(()),
            (None, KeySource::Variable(name)) => format!("there is no key: set the environment variable {name}"),
            (None, KeySource::File(path)) => format!("there is no key in {}", path.display()),
        };
        Err(self.fails(ProviderFault::Auth, message))
    }
}

#[async_trait]
impl Provider for Vendor {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn maker(&self) -> Maker {
        Maker { wire: self.config.wire.clone(), model: self.config.model.clone() }
    }

    fn limits(&self) -> ModelLimits {
        self.config.limits()
    }

    fn price(&self) -> Option<Price> {
        self.config.price
    }

    fn image_types(&self) -> &[&str] {
        if self.config.takes_images() { self.wire.image_types() } else { &[] }
    }

    async fn begin(&self, request: ModelRequest) -> Result<ModelStream, ProviderError> {
        self.check_key()?;
        validate(&request.history).map_err(|fault| self.fails(ProviderFault::BadRequest, fault.to_string()))?;
        let body = self.wire.body(&self.config, &request);
        self.exchange.begin(&self.config, self.wire, &body).await
    }
}
