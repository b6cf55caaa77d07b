//! Which servers are trusted: those that an authority of this system vouches for.
//!
//! The certificates of the authorities are read when the first HTTPS connection is made, once for all clients. Each
//! client would otherwise read them when it is made, and that was a quarter of what the start of a daemon costs.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

static AUTHORITIES: LazyLock<Result<Verifier, Error>> = LazyLock::new(|| {
    let found = Verifier::new(Arc::new(ring::default_provider()));
    if let Err(error) = &found {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "no certificates of authorities were found, so every HTTPS request fails; install ca-certificates"
        );
    }
    found
});

/// Whether certificates of authorities were found.
pub fn are_found() -> bool {
    AUTHORITIES.is_ok()
}

/// What a client makes its TLS connections with.
pub fn client_config() -> ClientConfig {
    // An error means that it was chosen before.
    let _ = ring::default_provider().install_default();
    let mut config =
        ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(System)).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// The verifier of the system, made when it is first asked. Without authorities every server is refused.
#[derive(Debug)]
struct System;

impl System {
    fn verifier() -> Result<&'static Verifier, Error> {
        AUTHORITIES.as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for System {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Self::verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::verifier()?.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::verifier()?.verify_tls13_signature(message, cert, signature)
    }

    /// These come from the cryptography alone, so no certificate is read for them.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
