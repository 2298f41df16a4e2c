//! Declares every setting once. `docs/configuration.md` is generated from this file.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::config::layers::{ConfigError, Values};
use crate::config::setting::{Section, section};
use crate::config::value::{
    BoundedInteger, OptionalPort, Secret, Tags, TopicFilters, Url, choices,
};
use homeport_server::{AddressRanges, AllowedOrigins, BridgeAddress};

section! {
    /// Files on this machine.
    Data ["data"] {
        /// Directory for data and for the server's secrets
        dir: PathBuf = Some("data"), flag "data-dir" DIR;
    }
}

section! {
    /// The store behind all systems: the embedded store in the data directory, or Amazon DynamoDB.
    Store ["store"] {
        /// The store to use
        kind: StoreKind = Some("embedded"), flag "store" STORE;
        /// Embedded store: when a write is acknowledged
        durability: DurabilitySetting = Some("sync"), flag "durability" DURABILITY;
        /// Embedded store: cache for data read from disk, in MiB
        cache_mib: BoundedInteger<1, 1_048_576> = Some("48"), flag "cache-mib" MIB;
        /// Embedded store: disk space to keep free, in MiB. Below it, writes are rejected; below a quarter of it, deletes too
        disk_reserve_mib: BoundedInteger<0, 1_073_741_824> = Some("256"), flag "disk-reserve-mib" MIB;
        /// Amazon DynamoDB: endpoint URL, if it is not AWS's own
        endpoint_url: Option<Url> = None, flag "store-endpoint-url" URL;
        /// Amazon DynamoDB: region; by default from AWS's own settings
        region: Option<String> = None, flag "store-region" REGION;
        /// Amazon DynamoDB: whether to create tables with point-in-time recovery
        point_in_time_recovery: bool = Some("true"), flag "store-point-in-time-recovery" BOOLEAN;
        /// Amazon DynamoDB: id or ARN (not an alias) of the KMS key that encrypts the tables; by default a key that AWS owns
        kms_key_id: Option<String> = None, flag "store-kms-key-id" KEY;
        /// Amazon DynamoDB: whether to create tables with deletion protection
        deletion_protection: bool = Some("false"), flag "store-deletion-protection" BOOLEAN;
        /// Amazon DynamoDB: tags of the tables, as name=value,name=value
        tags: Tags = None, flag "store-tags" TAGS;
    }
}

section! {
    /// Encryption of the embedded store. With a master key, values and backups are sealed. Set at most one of these.
    Encryption ["encryption"] {
        /// Master key: 32 bytes, as 64 hexadecimal digits or in base64
        master_key: Option<Secret> = None, flag "master-key" KEY;
        /// File that contains the master key, readable by its owner only
        master_key_file: Option<PathBuf> = None, flag "master-key-file" FILE;
        /// Shell command that prints the master key within 30 seconds, for example one that decrypts it with a KMS
        master_key_command: Option<String> = None, flag "master-key-command" COMMAND;
    }
}

section! {
    /// Clients of all ports: connection limits, reverse proxies, and web pages of other sites.
    Network ["network"] {
        /// Maximum number of connections of all ports together; further ones get 503, or "server busy" over MQTT. By default as many as the limit on open files allows, which the server raises as far as possible
        connections: Option<BoundedInteger<1, 1_000_000>> = None, flag "network-connections" COUNT;
        /// Maximum number of connections per address (IPv6: per /64), and never more than half of all
        connections_per_address: BoundedInteger<1, 1_000_000> = Some("1000"), flag "network-connections-per-address" COUNT;
        /// Addresses or ranges, separated by commas, that connections_per_address does not apply to. It does not apply to trusted proxies either
        exempt_addresses: AddressRanges = Some("127.0.0.0/8,::1"), flag "network-exempt-addresses" RANGES;
        /// Reverse proxies that name the client in a header, as addresses or ranges such as 10.0.0.0/8, separated by commas. Limits and logs then use the client's address. List only proxies that set the header themselves
        trusted_proxies: AddressRanges = None, flag "network-trusted-proxies" RANGES;
        /// Header in which trusted proxies name the client
        forwarded_header: ForwardedHeaderSetting = Some("x-forwarded-for"), flag "network-forwarded-header" HEADER;
        /// Separated by commas: origins of web pages, such as https://app.example.com, that may use DynamoDB's port and MQTT over WebSockets; and hosts, such as db.example.com, that requests without credentials may name on DynamoDB's port. The server's own pages, localhost and loopback addresses are always allowed
        allowed_origins: AllowedOrigins = None, flag "network-allowed-origins" ORIGINS;
        /// Whether ports without TLS may listen on addresses that are not loopback addresses; trusted_proxies permits that too
        insecure: bool = Some("false"), flag "insecure" BOOLEAN;
        /// Timeout for the headers of an HTTP request, in seconds; for the first request of a connection it starts when the connection is accepted, and includes the TLS handshake
        header_timeout_secs: BoundedInteger<1, 3600> = Some("10"), flag "network-header-timeout-secs" SECONDS;
    }
}

section! {
    /// TLS of all ports, with one certificate unless MQTT has its own.
    Tls ["tls"] {
        /// PEM file with the server's certificate and its intermediate certificates. With it, the HTTP port and DynamoDB's port speak TLS only, and MQTT gets a port with TLS
        cert: Option<PathBuf> = None, flag "tls-cert" FILE;
        /// PEM file with the private key of the certificate
        key: Option<PathBuf> = None, flag "tls-key" FILE;
        /// For a first try instead of cert and key: whether to use a certificate that the server creates in the data directory
        self_signed: bool = Some("false"), flag "tls-self-signed" BOOLEAN;
        /// Oldest version of TLS that clients may use
        min_version: TlsVersionSetting = Some("1.2"), flag "tls-min-version" VERSION;
        /// Interval at which the files are checked for a new certificate, in seconds
        reload_every_secs: BoundedInteger<1, 86_400> = Some("10"), flag "tls-reload-every-secs" SECONDS;
        /// Address of a port that redirects plain HTTP to the HTTP address with TLS; off by default
        redirect_listen: Option<SocketAddr> = None, flag "tls-redirect-listen" ADDRESS;
        /// How long browsers must use TLS for all ports of this host (HSTS), in seconds; 0 switches that off
        hsts_max_age_secs: BoundedInteger<0, 63_072_000> = Some("0"), flag "tls-hsts-max-age-secs" SECONDS;
    }
}

section! {
    /// The HTTP interface for devices and people.
    Http ["http"] {
        /// Address of the HTTP interface
        listen: SocketAddr = Some("127.0.0.1:8080"), flag "http-listen" ADDRESS;
        /// Maximum number of connections of this port; further ones get 503
        connections: BoundedInteger<1, 1_000_000> = Some("4096"), flag "http-connections" COUNT;
        /// Timeout of an idle connection, in seconds
        idle_timeout_secs: BoundedInteger<1, 86_400> = Some("120"), flag "http-idle-timeout-secs" SECONDS;
    }
}

section! {
    /// MQTT for devices and for programs that subscribe to their messages.
    Mqtt ["mqtt"] {
        /// Address of MQTT without TLS, or off; MQTT over WebSockets is at /mqtt of the HTTP address
        listen: OptionalPort = Some("127.0.0.1:1883"), flag "mqtt-listen" ADDRESS;
        /// Address of MQTT with TLS, or off; 127.0.0.1:8883 by default if there is a certificate
        tls_listen: Option<OptionalPort> = None, flag "mqtt-tls-listen" ADDRESS;
        /// TLS: PEM file with the certificate of MQTT and its intermediate certificates; by default that of tls.cert
        tls_cert: Option<PathBuf> = None, flag "mqtt-tls-cert" FILE;
        /// TLS: PEM file with the private key of the certificate
        tls_key: Option<PathBuf> = None, flag "mqtt-tls-key" FILE;
        /// TLS: PEM file with the CA certificates of clients; if set, clients need a certificate in addition to their password
        tls_client_ca: Option<PathBuf> = None, flag "mqtt-tls-client-ca" FILE;
        /// Maximum number of MQTT connections; further ones are rejected with "server busy"
        connections: BoundedInteger<1, 1_000_000> = Some("20000"), flag "mqtt-connections" COUNT;
        /// Timeout of the TLS handshake, and then of the first packet (CONNECT), in seconds
        connect_timeout_secs: BoundedInteger<1, 3600> = Some("10"), flag "mqtt-connect-timeout-secs" SECONDS;
        /// Maximum size of a packet, in bytes
        packet_bytes_max: BoundedInteger<1024, 360_000> = Some("262144"), flag "mqtt-packet-bytes-max" BYTES;
        /// Maximum number of messages of one connection that are being processed, and of messages sent to it that it has not acknowledged
        inflight_max: BoundedInteger<1, 65_535> = Some("256"), flag "mqtt-inflight-max" COUNT;
        /// Maximum number of queued messages per session; newer ones are dropped
        queue_max: BoundedInteger<1, 1_000_000> = Some("1000"), flag "mqtt-queue-max" COUNT;
        /// Maximum number of subscriptions per client
        subscriptions_max: BoundedInteger<1, 1000> = Some("100"), flag "mqtt-subscriptions-max" COUNT;
        /// Maximum number of sessions, connected or not
        sessions_max: BoundedInteger<1, 10_000_000> = Some("100000"), flag "mqtt-sessions-max" COUNT;
        /// Maximum lifetime of a disconnected session, in seconds
        session_expiry_max_secs: BoundedInteger<1, 31_536_000> = Some("604800"), flag "mqtt-session-expiry-max-secs" SECONDS;
        /// Maximum number of topics with a retained message
        retained_max: BoundedInteger<0, 10_000_000> = Some("100000"), flag "mqtt-retained-max" COUNT;
        /// Maximum keep-alive of MQTT 5 clients, in seconds
        keep_alive_max_secs: BoundedInteger<1, 65_535> = Some("1200"), flag "mqtt-keep-alive-max-secs" SECONDS;
    }
}

section! {
    /// The bridge, which receives messages from an existing broker as if they had been published here.
    Bridge ["bridge"] {
        /// URL of the broker, as mqtt://host:port or mqtts://host:port; no bridge by default
        url: Option<BridgeAddress> = None, flag "bridge-url" URL;
        /// Topic filters of the messages to receive, separated by commas; $share/group/filter shares them with other servers
        filters: Option<TopicFilters> = None, flag "bridge-filters" FILTERS;
        /// Client id of the bridge's session at the broker; keep it stable and unique
        client_id: String = Some("homeport"), flag "bridge-client-id" ID;
        /// MQTT version of the broker
        protocol: BridgeProtocolSetting = Some("5"), flag "bridge-protocol" VERSION;
        /// User name at the broker, if it requires one
        user: Option<String> = None, flag "bridge-user" USER;
        /// Password at the broker
        password: Option<Secret> = None, flag "bridge-password" PASSWORD;
        /// TLS: PEM file with the CA certificates of the broker; by default this machine's root certificates
        tls_ca: Option<PathBuf> = None, flag "bridge-tls-ca" FILE;
        /// TLS: PEM file with the bridge's client certificate, if the broker requires one
        tls_cert: Option<PathBuf> = None, flag "bridge-tls-cert" FILE;
        /// TLS: PEM file with the private key of the client certificate
        tls_key: Option<PathBuf> = None, flag "bridge-tls-key" FILE;
        /// Maximum number of the broker's messages that are being processed
        inflight_max: BoundedInteger<1, 65_535> = Some("256"), flag "bridge-inflight-max" COUNT;
        /// Keep-alive interval of the connection to the broker, in seconds
        keep_alive_secs: BoundedInteger<1, 65_535> = Some("60"), flag "bridge-keep-alive-secs" SECONDS;
        /// How long an MQTT 5 broker keeps messages while the bridge is disconnected, in seconds
        session_expiry_secs: BoundedInteger<1, 4_294_967_295> = Some("604800"), flag "bridge-session-expiry-secs" SECONDS;
        /// Whether the server reports that it is not ready while the bridge is disconnected
        required: bool = Some("false"), flag "bridge-required" BOOLEAN;
    }
}

section! {
    /// Operators, who manage keys and devices.
    Admin ["admin"] {
        /// Admin token; created at the first start by default
        token: Option<Secret> = None, flag "admin-token" TOKEN;
    }
}

section! {
    /// The web console for operators.
    Console ["console"] {
        /// Lifetime of a sign-in, in hours; a restart signs everybody out
        session_hours: BoundedInteger<1, 720> = Some("12"), flag "console-session-hours" HOURS;
    }
}

section! {
    /// How often devices are expected to send data. A device is online within two of these intervals, late within six, and silent after that.
    Fleet ["fleet"] {
        /// Sensors, in seconds
        sensors_every_secs: BoundedInteger<1, 31_536_000> = Some("600"), flag "fleet-sensors-every-secs" SECONDS;
        /// Chargers, in seconds
        chargers_every_secs: BoundedInteger<1, 31_536_000> = Some("900"), flag "fleet-chargers-every-secs" SECONDS;
        /// Things that send telemetry, in seconds
        telemetry_every_secs: BoundedInteger<1, 31_536_000> = Some("300"), flag "fleet-telemetry-every-secs" SECONDS;
        /// Devices that write records, in seconds
        records_every_secs: BoundedInteger<1, 31_536_000> = Some("3600"), flag "fleet-records-every-secs" SECONDS;
        /// Apps that refresh their push token, in seconds
        push_every_secs: BoundedInteger<1, 31_536_000> = Some("604800"), flag "fleet-push-every-secs" SECONDS;
    }
}

section! {
    /// The API keys of devices.
    ApiKeys ["api_keys"] {
        /// Pepper that is hashed with every API key; created at the first start by default. All servers of one store need the same
        pepper: Option<Secret> = None, flag "api-key-pepper" SECRET, variable "API_KEY_PEPPER";
        /// Maximum rate of HTTP requests and MQTT messages together of one API key, per second; further requests are rejected, further messages wait
        rate_per_second: BoundedInteger<1, 1_000_000> = Some("1000"), flag "rate-per-second" REQUESTS;
    }
}

section! {
    /// Data of all systems on its way into the store.
    Ingest ["ingest"] {
        /// How far a timestamp may be ahead of the server's clock, in seconds; data that is further ahead is rejected
        future_limit_secs: BoundedInteger<0, 3_155_760_000> = Some("86400"), flag "future-limit-secs" SECONDS;
    }
}

section! {
    /// Sensors and their readings.
    Sensors ["sensors"] {
        /// Retention of readings, in days; 0 keeps them forever
        reading_retention_days: BoundedInteger<0, 36_500> = Some("90"), flag "reading-retention-days" DAYS;
        /// Minimum interval between updates of a device's time of last activity, in seconds
        last_seen_every_secs: BoundedInteger<0, 86_400> = Some("60"), flag "last-seen-every-secs" SECONDS;
    }
}

section! {
    /// The record store.
    Records ["records"] {
        /// Table of the record store
        table: String = Some("awsh-recordstore-dev"), flag "records-table" TABLE;
        /// Interval at which history that is older than its group's retention is deleted, in seconds
        housekeeping_every_secs: BoundedInteger<1, 31_536_000> = Some("3600"), flag "records-housekeeping-every-secs" SECONDS;
    }
}

section! {
    /// Telemetry of things.
    Telemetry ["telemetry"] {
        /// Table of telemetry
        table: String = Some("van-telemetry"), flag "telemetry-table" TABLE;
    }
}

section! {
    /// Rules, which process messages.
    Rules ["rules"] {
        /// File with rules, in TOML or JSON; they override rules of the same name in the store
        file: Option<PathBuf> = None, flag "rules-file" FILE;
        /// Secret that signs HTTP requests of rules: whsec_ and 24 to 64 bytes in base64; created at the first start by default
        http_secret: Option<Secret> = None, flag "rules-http-secret" SECRET;
        /// URLs that notifications of the action sns are posted to, by topic ARN: arn=https://…,arn=https://…
        sns_topics: Tags = None, flag "rules-sns-topics" TOPICS;
        /// Whether HTTP requests of rules may go to private, loopback and link-local addresses
        http_private: bool = Some("false"), flag "rules-http-private" BOOLEAN;
    }
}

section! {
    /// Push: devices of app users and notifications to them.
    Push ["push"] {
        /// Table of device tokens
        table: String = Some("photoeditor-dev-device-tokens"), flag "push-table" TABLE;
        /// Whether the table of device tokens has an index of active devices by platform, which broadcasts read instead of the whole table
        broadcast_index: bool = Some("false"), flag "push-broadcast-index" BOOLEAN;
        /// URL of Expo's push service
        expo_url: Url = Some("https://exp.host"), flag "push-expo-url" URL;
        /// Access token for Expo's push service, if the Expo project requires one
        expo_access_token: Option<Secret> = None, flag "push-expo-access-token" TOKEN;
        /// Maximum number of unfinished notifications; further ones are rejected
        outbox_max: BoundedInteger<1, 100_000_000> = Some("100000"), flag "push-outbox-max" COUNT;
        /// Maximum number of messages to Expo per second; Expo allows fewer than 600 per project
        rate_per_second: BoundedInteger<1, 599> = Some("500"), flag "push-rate-per-second" MESSAGES;
        /// Delay between sending a message and asking for its receipt, in seconds
        receipt_delay_secs: BoundedInteger<1, 86_400> = Some("900"), flag "push-receipt-delay-secs" SECONDS;
    }
}

section! {
    /// Alerts, and their notifications to people and programs.
    Alerts ["alerts"] {
        /// Maximum number of queued notifications; an alert that exceeds it is raised without notification
        outbox_max: BoundedInteger<1, 100_000_000> = Some("100000"), flag "alerts-outbox-max" COUNT;
        /// Retention of cleared alerts, in days; 0 keeps them forever
        retention_days: BoundedInteger<0, 36_500> = Some("365"), flag "alerts-retention-days" DAYS;
        /// Time after a start during which no device is reported as silent, in seconds: devices need time to reconnect
        silence_grace_secs: BoundedInteger<0, 86_400> = Some("60"), flag "alerts-silence-grace-secs" SECONDS;
        /// Age up to which values raise alerts when they are stored, in seconds: older ones, such as imported history, raise none; 0 for any age
        announce_max_age_secs: BoundedInteger<0, 31_622_400> = Some("86400"), flag "alerts-announce-max-age-secs" SECONDS;
        /// Secret that signs webhooks without a secret of their own: whsec_ and 24 to 64 bytes in base64
        webhook_secret: Option<Secret> = None, flag "alerts-webhook-secret" SECRET;
        /// Whether webhooks may go to this machine and to private networks
        private_addresses: bool = Some("false"), flag "alerts-private-addresses" BOOLEAN;
        /// Host of the SMTP relay for e-mail; no e-mail by default
        smtp_host: Option<String> = None, flag "alerts-smtp-host" HOST;
        /// Port of the SMTP relay
        smtp_port: BoundedInteger<1, 65_535> = Some("587"), flag "alerts-smtp-port" PORT;
        /// Encryption of the connection to the SMTP relay
        smtp_tls: SmtpTlsSetting = Some("starttls"), flag "alerts-smtp-tls" MODE;
        /// SMTP user name, if the relay requires one
        smtp_user: Option<String> = None, flag "alerts-smtp-user" USER;
        /// SMTP password
        smtp_password: Option<Secret> = None, flag "alerts-smtp-password" PASSWORD;
        /// Sender of e-mail, such as Homeport <homeport@example.com>
        smtp_from: Option<String> = None, flag "alerts-smtp-from" ADDRESS;
    }
}

section! {
    /// App users, who authenticate with a JWT.
    Users ["users"] {
        /// Signature algorithm of user tokens; tokens with another one are rejected
        jwt_algorithm: JwtAlgorithm = Some("HS256"), flag "user-jwt-algorithm" ALGORITHM;
        /// HS256: the secret, at least 32 characters; created at the first start by default
        jwt_secret: Option<Secret> = None, flag "user-jwt-secret" SECRET;
        /// RS256 and ES256: file with the public keys, as a JWKS
        jwks_file: Option<PathBuf> = None, flag "user-jwks-file" FILE;
        /// RS256 and ES256: URL of the public keys, as a JWKS
        jwks_url: Option<Url> = None, flag "user-jwks-url" URL;
        /// Required issuer (iss) of tokens; any by default
        jwt_issuer: Option<String> = None, flag "user-jwt-issuer" ISSUER;
        /// Required audience (aud) of tokens; any by default
        jwt_audience: Option<String> = None, flag "user-jwt-audience" AUDIENCE;
        /// Maximum difference between the clocks of server and issuer, in seconds
        jwt_leeway_secs: BoundedInteger<0, 300> = Some("30"), flag "user-jwt-leeway-secs" SECONDS;
    }
}

section! {
    /// DynamoDB's own protocol, served over the embedded store.
    Dynamodb ["dynamodb"] {
        /// Address of DynamoDB's protocol, or off. Without an access key it must be a loopback address, and web pages of other sites are rejected
        listen: OptionalPort = Some("127.0.0.1:8000"), flag "dynamodb-listen" ADDRESS;
        /// Region in ARNs
        region: String = Some("us-east-1"), flag "dynamodb-region" REGION;
        /// Access key id that requests must be signed with
        access_key_id: Option<String> = None, flag "dynamodb-access-key-id" ID;
        /// Secret of the access key; give it in the environment rather than on the command line
        secret_access_key: Option<Secret> = None, flag "dynamodb-secret-access-key" SECRET;
        /// TOML file with further credentials, each with an access policy
        credentials_file: Option<PathBuf> = None, flag "dynamodb-credentials-file" FILE;
        /// Maximum number of connections of this port; further ones get 503
        connections: BoundedInteger<1, 1_000_000> = Some("1024"), flag "dynamodb-connections" COUNT;
        /// Timeout of an idle connection, in seconds
        idle_timeout_secs: BoundedInteger<1, 86_400> = Some("120"), flag "dynamodb-idle-timeout-secs" SECONDS;
        /// Directory whose subdirectories are the buckets for table exports and imports; off by default
        buckets: Option<PathBuf> = None, flag "dynamodb-buckets" DIR;
    }
}

section! {
    /// Logs on standard error.
    Logs ["logs"] {
        /// Log level, or levels by module, such as info,homeport_server=debug
        filter: String = Some("info,fjall=warn,lsm_tree=warn"), flag "log" FILTER;
        /// Format of log lines
        format: LogFormat = Some("pretty"), flag "log-format" FORMAT;
    }
}

choices! {
    /// The store to use.
    StoreKind {
        /// In the data directory
        Embedded = "embedded",
        /// Amazon DynamoDB
        Dynamodb = "dynamodb",
    }
}

choices! {
    /// The header in which reverse proxies name the client.
    ForwardedHeaderSetting {
        /// A list of addresses; each proxy appends one
        XForwardedFor = "x-forwarded-for",
        /// The format of RFC 7239
        Forwarded = "forwarded",
    }
}

choices! {
    /// Versions of TLS.
    TlsVersionSetting {
        /// TLS 1.2 and newer
        V1_2 = "1.2",
        /// TLS 1.3 and newer
        V1_3 = "1.3",
    }
}

choices! {
    /// When a write is acknowledged.
    DurabilitySetting {
        /// After it is on disk: survives a power cut
        Sync = "sync",
        /// After the operating system has it, which writes to disk every 50 ms: a power cut may lose the last moments
        Relaxed = "relaxed",
    }
}

choices! {
    /// Signature algorithm of user tokens.
    JwtAlgorithm {
        /// A secret shared with the issuer
        Hs256 = "HS256",
        /// RSA keys of the issuer
        Rs256 = "RS256",
        /// P-256 keys of the issuer
        Es256 = "ES256",
    }
}

choices! {
    /// MQTT version of a bridge's broker.
    BridgeProtocolSetting {
        /// MQTT 5
        V5 = "5",
        /// MQTT 3.1.1
        V3 = "3.1.1",
    }
}

choices! {
    /// Encryption of the connection to an SMTP relay.
    SmtpTlsSetting {
        /// Starts in plain text, and switches to TLS before anything is sent; fails without TLS
        Starttls = "starttls",
        /// TLS from the start, as on port 465
        Implicit = "implicit",
        /// No encryption
        None = "none",
    }
}

choices! {
    /// Format of log lines.
    LogFormat {
        /// For people
        Pretty = "pretty",
        /// For programs: one JSON object per line
        Json = "json",
    }
}

/// Lists the sections once, for the struct of all settings and for code that iterates over them.
macro_rules! all {
    ($($field:ident: $section:ident,)+) => {
        /// The effective configuration.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $(pub(crate) $field: $section,)+
        }

        /// All sections, in the order of the documents.
        pub(crate) const SECTIONS: &[&Section] = &[$(&$section::SECTION),+];

        impl Settings {
            /// Parses the values of all layers.
            ///
            /// # Errors
            /// The first invalid value, with its origin.
            pub(crate) fn read(values: &Values) -> Result<Self, ConfigError> {
                let settings = Self { $($field: $section::read(values)?,)+ };
                settings.check()?;
                Ok(settings)
            }
        }
    };
}

all! {
    data: Data,
    store: Store,
    encryption: Encryption,
    network: Network,
    tls: Tls,
    http: Http,
    mqtt: Mqtt,
    bridge: Bridge,
    admin: Admin,
    console: Console,
    fleet: Fleet,
    api_keys: ApiKeys,
    ingest: Ingest,
    sensors: Sensors,
    push: Push,
    alerts: Alerts,
    users: Users,
    records: Records,
    telemetry: Telemetry,
    rules: Rules,
    dynamodb: Dynamodb,
    logs: Logs,
}

/// Where MQTT with TLS listens if there is a certificate and no other address is set.
const MQTT_TLS_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8883);

impl Tls {
    /// Whether the HTTP port and DynamoDB's port use TLS.
    pub(crate) fn is_enabled(&self) -> bool {
        self.self_signed || self.cert.is_some()
    }
}

impl Settings {
    /// The address of MQTT with TLS, if it has a certificate.
    pub(crate) fn mqtt_tls_listen(&self) -> Option<SocketAddr> {
        let has_certificate = self.tls.is_enabled() || self.mqtt.tls_cert.is_some();
        match self.mqtt.tls_listen {
            Some(set) => set.0,
            None => Some(MQTT_TLS_LISTEN),
        }
        .filter(|_| has_certificate)
    }

    /// Checks combinations of settings.
    fn check(&self) -> Result<(), ConfigError> {
        let both = [
            self.dynamodb.access_key_id.is_some(),
            self.dynamodb.secret_access_key.is_some(),
        ];
        if both[0] != both[1] {
            return Err(ConfigError::Together(
                "dynamodb.access_key_id and dynamodb.secret_access_key must be given together",
            ));
        }
        self.check_tls()?;
        self.check_bridge()?;
        self.check_encryption()?;
        self.check_table_key()?;
        let mut receivers = self.rules.sns_topics.0.iter();
        if receivers.any(|(_, url)| url.parse::<Url>().is_err()) {
            return Err(ConfigError::Together(
                "each URL in rules.sns_topics must begin with https:// or http://",
            ));
        }
        let alerts = &self.alerts;
        if alerts.smtp_host.is_some() != alerts.smtp_from.is_some() {
            return Err(ConfigError::Together(
                "alerts.smtp_host and alerts.smtp_from must be given together",
            ));
        }
        if alerts.smtp_user.is_some() != alerts.smtp_password.is_some() {
            return Err(ConfigError::Together(
                "alerts.smtp_user and alerts.smtp_password must be given together",
            ));
        }
        let users = &self.users;
        let key_sets =
            usize::from(users.jwks_file.is_some()) + usize::from(users.jwks_url.is_some());
        match users.jwt_algorithm {
            JwtAlgorithm::Hs256 if key_sets > 0 => {
                return Err(ConfigError::Together(
                    "users.jwks_file and users.jwks_url need users.jwt_algorithm RS256 or ES256",
                ));
            }
            JwtAlgorithm::Rs256 | JwtAlgorithm::Es256
                if key_sets != 1 || users.jwt_secret.is_some() =>
            {
                return Err(ConfigError::Together(
                    "users.jwt_algorithm RS256 or ES256 needs either users.jwks_file or users.jwks_url, and no users.jwt_secret",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let (tls, mqtt) = (&self.tls, &self.mqtt);
        let is_any = |listen: Option<OptionalPort>| listen.is_some_and(|listen| listen.0.is_some());
        let problem = if tls.cert.is_some() != tls.key.is_some() {
            "tls.cert and tls.key must be given together"
        } else if tls.self_signed && tls.cert.is_some() {
            "tls.self_signed cannot be used with tls.cert and tls.key"
        } else if tls.redirect_listen.is_some() && !tls.is_enabled() {
            "tls.redirect_listen needs tls.cert and tls.key, or tls.self_signed"
        } else if tls.hsts_max_age_secs.get() > 0 && tls.cert.is_none() {
            // Browsers let nobody continue to a host with HSTS whose certificate they do not trust.
            "tls.hsts_max_age_secs needs tls.cert and tls.key"
        } else if mqtt.tls_cert.is_some() != mqtt.tls_key.is_some() {
            "mqtt.tls_cert and mqtt.tls_key must be given together"
        } else if is_any(mqtt.tls_listen) && self.mqtt_tls_listen().is_none() {
            "mqtt.tls_listen needs a certificate: set tls.cert and tls.key, or mqtt.tls_cert and mqtt.tls_key"
        } else if mqtt.tls_client_ca.is_some() && self.mqtt_tls_listen().is_none() {
            "mqtt.tls_client_ca needs MQTT with TLS: set tls.cert and tls.key, or mqtt.tls_cert and mqtt.tls_key"
        } else {
            return Ok(());
        };
        Err(ConfigError::Together(problem))
    }

    fn check_encryption(&self) -> Result<(), ConfigError> {
        let encryption = &self.encryption;
        let given = usize::from(encryption.master_key.is_some())
            + usize::from(encryption.master_key_file.is_some())
            + usize::from(encryption.master_key_command.is_some());
        if given > 1 {
            return Err(ConfigError::Together(
                "only one of encryption.master_key, encryption.master_key_file and encryption.master_key_command may be set",
            ));
        }
        if given > 0 && self.store.kind == StoreKind::Dynamodb {
            return Err(ConfigError::Together(
                "encryption works with store.kind embedded only; Amazon DynamoDB encrypts its tables itself, with store.kms_key_id if it is set",
            ));
        }
        Ok(())
    }

    /// Rejects an alias: it cannot be compared with a table's key, and permissions cannot name it.
    fn check_table_key(&self) -> Result<(), ConfigError> {
        let key = self.store.kms_key_id.as_deref().unwrap_or_default();
        if key.starts_with("alias/") || key.contains(":alias/") {
            return Err(ConfigError::Together(
                "store.kms_key_id must be the id or the ARN of a key, not an alias",
            ));
        }
        Ok(())
    }

    fn check_bridge(&self) -> Result<(), ConfigError> {
        let bridge = &self.bridge;
        if bridge.url.is_some() != bridge.filters.is_some() {
            return Err(ConfigError::Together(
                "bridge.url and bridge.filters must be given together",
            ));
        }
        if bridge.tls_cert.is_some() != bridge.tls_key.is_some() {
            return Err(ConfigError::Together(
                "bridge.tls_cert and bridge.tls_key must be given together",
            ));
        }
        let has_tls = bridge.url.as_ref().is_some_and(BridgeAddress::has_tls);
        if !has_tls && (bridge.tls_ca.is_some() || bridge.tls_cert.is_some()) {
            return Err(ConfigError::Together(
                "bridge.tls_ca, bridge.tls_cert and bridge.tls_key need a bridge.url that begins with mqtts://",
            ));
        }
        let is_v3 = bridge.protocol == BridgeProtocolSetting::V3;
        if is_v3 && bridge.password.is_some() && bridge.user.is_none() {
            return Err(ConfigError::Together(
                "bridge.password needs bridge.user with bridge.protocol 3.1.1",
            ));
        }
        Ok(())
    }
}
