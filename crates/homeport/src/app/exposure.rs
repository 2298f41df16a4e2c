//! Refuses to listen without TLS on addresses that other machines can reach.

use std::net::SocketAddr;

use anyhow::ensure;

use crate::config::Settings;

/// Checks the addresses of all ports. Call it before anything is created.
///
/// # Errors
/// If other machines can reach a port without TLS, and the settings do not accept that.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<()> {
    let network = &settings.network;
    // Proxies add TLS, and reach this machine over a network that the operator controls.
    if network.insecure || !network.trusted_proxies.is_empty() {
        return Ok(());
    }
    let exposed: Vec<String> = ports_without_tls(settings)
        .into_iter()
        .filter_map(|(setting, address)| Some((setting, address?)))
        .filter(|(_, address)| !address.ip().to_canonical().is_loopback())
        .map(|(setting, address)| format!("{setting} ({address})"))
        .collect();
    ensure!(
        exposed.is_empty(),
        "other machines can reach {}, and without TLS anyone on the network can read the credentials; set tls.cert and tls.key, or try \
         --tls-self-signed, and give MQTT clients the address in mqtt.tls_listen; if a reverse proxy adds TLS, name it in \
         network.trusted_proxies; to serve this machine only, listen on 127.0.0.1; to accept the risk, use --insecure",
        exposed.join(" and ")
    );
    Ok(())
}

fn ports_without_tls(settings: &Settings) -> Vec<(&'static str, Option<SocketAddr>)> {
    let mqtt = ("mqtt.listen", settings.mqtt.listen.0);
    match settings.tls.is_enabled() {
        true => vec![mqtt],
        false => vec![
            ("http.listen", Some(settings.http.listen)),
            ("dynamodb.listen", settings.dynamodb.listen.0),
            mqtt,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposed_ports_need_tls_or_consent() {
        let tls = "[tls]\ncert = \"c\"\nkey = \"k\"\n";
        for (file, exposed) in [
            ("", None),
            (
                "[http]\nlisten = \"0.0.0.0:80\"",
                Some("http.listen (0.0.0.0:80),"),
            ),
            (
                "[http]\nlisten = \"[::]:80\"",
                Some("http.listen ([::]:80),"),
            ),
            ("[http]\nlisten = \"[::ffff:127.0.0.1]:80\"", None),
            ("[http]\nlisten = \"127.5.5.5:80\"", None),
            (
                "[dynamodb]\nlisten = \"10.0.0.1:80\"",
                Some("dynamodb.listen (10.0.0.1:80),"),
            ),
            (
                "[mqtt]\nlisten = \"10.0.0.1:80\"",
                Some("mqtt.listen (10.0.0.1:80),"),
            ),
            ("[mqtt]\nlisten = \"off\"", None),
            (
                "[http]\nlisten = \"0.0.0.0:80\"\n[mqtt]\nlisten = \"0.0.0.0:81\"",
                Some("http.listen (0.0.0.0:80) and mqtt.listen (0.0.0.0:81),"),
            ),
            (
                "[http]\nlisten = \"0.0.0.0:80\"\n[network]\ninsecure = true",
                None,
            ),
            (
                "[http]\nlisten = \"0.0.0.0:80\"\n[network]\ntrusted_proxies = \"10.0.0.1\"",
                None,
            ),
            (&format!("[http]\nlisten = \"0.0.0.0:80\"\n{tls}"), None),
            (&format!("[dynamodb]\nlisten = \"0.0.0.0:80\"\n{tls}"), None),
            (
                &format!("[mqtt]\nlisten = \"0.0.0.0:80\"\n{tls}"),
                Some("mqtt.listen (0.0.0.0:80),"),
            ),
        ] {
            let outcome = check(&Settings::from_file_alone(file));
            let message = outcome.err().map(|error| error.to_string());
            match (&message, exposed) {
                (None, None) => {}
                (Some(message), Some(exposed)) => assert!(message.contains(exposed), "{message}"),
                _ => panic!("{file}: {message:?}"),
            }
        }
    }
}
