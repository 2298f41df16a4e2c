//! TLS of all ports, from the settings.

mod expiry;
mod renewal;
mod self_signed;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use homeport_server::{Certificate, CertificateFiles, Tls, TlsProtocols, TlsVersion};

use crate::config::{Settings, TlsVersionSetting};

pub(crate) use expiry::CertificateExpiry;
pub(crate) use renewal::Renewal;
use self_signed::SelfSigned;

/// TLS of all ports, and what it needs to stay valid.
pub(crate) struct ServerTls {
    /// TLS of the HTTP port and of DynamoDB's port.
    pub(crate) http: Option<Tls>,
    /// MQTT's port with TLS.
    pub(crate) mqtt: Option<(SocketAddr, Tls)>,
    pub(crate) expiry: CertificateExpiry,
    pub(crate) renewal: Renewal,
    /// The self-signed certificate, if the server uses one.
    pub(crate) self_signed: Option<SelfSigned>,
}

impl ServerTls {
    /// Reads the certificates. A self-signed one is created if necessary.
    pub(crate) fn prepare(settings: &Settings) -> anyhow::Result<Self> {
        let tls = &settings.tls;
        let self_signed = tls.self_signed.then(|| SelfSigned::new(settings));
        if let Some(self_signed) = &self_signed {
            self_signed.ensure()?;
        }
        let own = match &self_signed {
            Some(self_signed) => Some(self_signed.files()),
            None => files(tls.cert.as_deref(), tls.key.as_deref()),
        };
        let own = own.map(load).transpose().context("tls.cert and tls.key")?;
        let mqtt = &settings.mqtt;
        let of_mqtt = files(mqtt.tls_cert.as_deref(), mqtt.tls_key.as_deref());
        let of_mqtt = of_mqtt.map(load).transpose();
        let of_mqtt = of_mqtt.context("mqtt.tls_cert and mqtt.tls_key")?;
        let min_version = match tls.min_version {
            TlsVersionSetting::V1_2 => TlsVersion::V1_2,
            TlsVersionSetting::V1_3 => TlsVersion::V1_3,
        };
        let http = own
            .as_ref()
            .map(|own| Tls::new(own, min_version, TlsProtocols::Http, None))
            .transpose()?;
        let for_mqtt = of_mqtt.as_ref().or(own.as_ref());
        let mqtt = match (settings.mqtt_tls_listen(), for_mqtt) {
            (Some(address), Some(certificate)) => {
                let client_ca = mqtt.tls_client_ca.as_deref();
                let tls = Tls::new(certificate, min_version, TlsProtocols::Any, client_ca)
                    .context("mqtt.tls_client_ca")?;
                Some((address, tls))
            }
            _ => None,
        };
        let expiry = CertificateExpiry(own.iter().chain(&of_mqtt).cloned().collect());
        expiry.log_warning();
        Ok(Self {
            http,
            mqtt,
            renewal: Renewal::new(settings, own, expiry.clone(), self_signed.clone()),
            expiry,
            self_signed,
        })
    }
}

fn files(certificate: Option<&Path>, key: Option<&Path>) -> Option<CertificateFiles> {
    Some(CertificateFiles {
        certificate: certificate?.to_owned(),
        key: key?.to_owned(),
    })
}

fn load(files: CertificateFiles) -> anyhow::Result<Certificate> {
    Ok(Certificate::load(files)?)
}
