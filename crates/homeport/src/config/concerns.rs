//! Every setting there is, declared once. `docs/configuration.md` is printed from this file.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::layers::{ConfigError, Values};
use crate::config::setting::{Concern, concern};
use crate::config::value::{OptionalPort, Secret, Tags, TopicFilters, Url, Whole, words};
use homeport_server::{AddressRanges, AllowedOrigins, BridgeAddress};

concern! {
    /// Where things are kept on this machine.
    Data ["data"] {
        /// Where the data and the server's secrets are kept
        dir: PathBuf = Some("data"), flag "data-dir" DIR;
    }
}

concern! {
    /// The store behind all systems: in the data directory, or Amazon DynamoDB.
    Store ["store"] {
        /// Which store is used
        kind: StoreKind = Some("embedded"), flag "store" STORE;
        /// Embedded store: when a write is acknowledged
        durability: DurabilityWord = Some("sync"), flag "durability" DURABILITY;
        /// Embedded store: memory for data read from disk, in MiB
        cache_mib: Whole<1, 1_048_576> = Some("48"), flag "cache-mib" MIB;
        /// Embedded store: space that must stay free on the disk, in MiB. With less, writes are refused; with less than a quarter of it, deletes too
        disk_reserve_mib: Whole<0, 1_073_741_824> = Some("256"), flag "disk-reserve-mib" MIB;
        /// Amazon DynamoDB: the address to ask instead of AWS's own
        endpoint_url: Option<Url> = None, flag "store-endpoint-url" URL;
        /// Amazon DynamoDB: the region; unless given, the one that AWS's own settings name
        region: Option<String> = None, flag "store-region" REGION;
        /// Amazon DynamoDB: whether tables are made with point-in-time recovery
        point_in_time_recovery: bool = Some("true"), flag "store-point-in-time-recovery" BOOLEAN;
        /// Amazon DynamoDB: the id or the ARN (no alias) of the KMS key that tables are encrypted with; unless given, a key that AWS owns
        kms_key_id: Option<String> = None, flag "store-kms-key-id" KEY;
        /// Amazon DynamoDB: whether tables are made so that they cannot be deleted until this is switched off
        deletion_protection: bool = Some("false"), flag "store-deletion-protection" BOOLEAN;
        /// Amazon DynamoDB: tags of the tables, written name=value,name=value
        tags: Tags = None, flag "store-tags" TAGS;
    }
}

concern! {
    /// Encryption of what the embedded store keeps: values and backups are sealed where a master key is given. At most one of these is.
    Encryption ["encryption"] {
        /// The master key: 32 bytes, as 64 hexadecimal digits or in base64
        master_key: Option<Secret> = None, flag "master-key" KEY;
        /// A file with the master key, which nobody but its owner may use
        master_key_file: Option<PathBuf> = None, flag "master-key-file" FILE;
        /// A command for sh that prints the master key within 30 seconds, such as one that has a KMS decrypt it
        master_key_command: Option<String> = None, flag "master-key-command" COMMAND;
    }
}

concern! {
    /// Clients of all ports: connection limits, reverse proxies, and web pages of other sites.
    Network ["network"] {
        /// Most connections of all ports together; further ones get 503, or "server busy" over MQTT. Unless given, as many as the limit on open files allows, which is raised at the start as far as possible
        connections: Option<Whole<1, 1_000_000>> = None, flag "network-connections" COUNT;
        /// Most connections of one address (IPv6: of one /64), and never more than half of all
        connections_per_address: Whole<1, 1_000_000> = Some("1000"), flag "network-connections-per-address" COUNT;
        /// Addresses to which connections_per_address does not apply: addresses or ranges, separated by commas. It does not apply to trusted proxies either
        exempt_addresses: AddressRanges = Some("127.0.0.0/8,::1"), flag "network-exempt-addresses" RANGES;
        /// Reverse proxies that name the client in a header: addresses or ranges like 10.0.0.0/8, separated by commas. Limits and logs then use the client's address. List only proxies that set the header themselves
        trusted_proxies: AddressRanges = None, flag "network-trusted-proxies" RANGES;
        /// The header in which trusted proxies name the client
        forwarded_header: ForwardedHeaderWord = Some("x-forwarded-for"), flag "network-forwarded-header" HEADER;
        /// Separated by commas: origins of web pages, like https://app.example.com, that may use DynamoDB's port and MQTT over WebSockets; and hosts, like db.example.com, that requests without credentials may name on DynamoDB's port. The server's own pages, localhost and loopback addresses are always allowed
        allowed_origins: AllowedOrigins = None, flag "network-allowed-origins" ORIGINS;
        /// Time for the headers of an HTTP request, in seconds; for the first request of a connection from when it was accepted
        header_timeout_secs: Whole<1, 3600> = Some("10"), flag "network-header-timeout-secs" SECONDS;
    }
}

concern! {
    /// The HTTP interface for devices and people.
    Http ["http"] {
        /// Where devices and people are served over HTTP
        listen: SocketAddr = Some("127.0.0.1:8080"), flag "http-listen" ADDRESS;
        /// Most connections of this port; further ones get 503
        connections: Whole<1, 1_000_000> = Some("4096"), flag "http-connections" COUNT;
        /// How long a connection may be silent between requests, in seconds
        idle_timeout_secs: Whole<1, 86_400> = Some("120"), flag "http-idle-timeout-secs" SECONDS;
    }
}

concern! {
    /// MQTT for devices and for whoever listens to them.
    Mqtt ["mqtt"] {
        /// Where MQTT is served; it is served over WebSockets too, at /mqtt of HTTP's address
        listen: SocketAddr = Some("127.0.0.1:1883"), flag "mqtt-listen" ADDRESS;
        /// Where MQTT is served with TLS; nowhere unless given
        tls_listen: Option<SocketAddr> = None, flag "mqtt-tls-listen" ADDRESS;
        /// TLS: a PEM file with the server's certificate and those between it and its root
        tls_cert: Option<PathBuf> = None, flag "mqtt-tls-cert" FILE;
        /// TLS: a PEM file with the certificate's private key
        tls_key: Option<PathBuf> = None, flag "mqtt-tls-key" FILE;
        /// TLS: a PEM file with the certificates of those who issue clients' certificates; if given, clients must show one, beside their password
        tls_client_ca: Option<PathBuf> = None, flag "mqtt-tls-client-ca" FILE;
        /// Most MQTT connections; further ones are refused with "server busy"
        connections: Whole<1, 1_000_000> = Some("20000"), flag "mqtt-connections" COUNT;
        /// How long a TLS handshake may take, and then the first packet (CONNECT), in seconds
        connect_timeout_secs: Whole<1, 3600> = Some("10"), flag "mqtt-connect-timeout-secs" SECONDS;
        /// The largest packet, in bytes
        packet_bytes_max: Whole<1024, 360_000> = Some("262144"), flag "mqtt-packet-bytes-max" BYTES;
        /// Messages of one connection that are being taken in, and messages sent to it that it has not acknowledged
        inflight_max: Whole<1, 65_535> = Some("256"), flag "mqtt-inflight-max" COUNT;
        /// Messages that wait for one session; newer ones are dropped for it
        queue_max: Whole<1, 1_000_000> = Some("1000"), flag "mqtt-queue-max" COUNT;
        /// Subscriptions of one client
        subscriptions_max: Whole<1, 1000> = Some("100"), flag "mqtt-subscriptions-max" COUNT;
        /// Sessions at one time, connected and not
        sessions_max: Whole<1, 10_000_000> = Some("100000"), flag "mqtt-sessions-max" COUNT;
        /// How long a session may live without a connection, in seconds
        session_expiry_max_secs: Whole<1, 31_536_000> = Some("604800"), flag "mqtt-session-expiry-max-secs" SECONDS;
        /// Topics that have a retained message
        retained_max: Whole<0, 10_000_000> = Some("100000"), flag "mqtt-retained-max" COUNT;
        /// The longest keep-alive that MQTT 5 clients are granted, in seconds
        keep_alive_max_secs: Whole<1, 65_535> = Some("1200"), flag "mqtt-keep-alive-max-secs" SECONDS;
    }
}

concern! {
    /// The bridge: messages of an existing broker, taken as if they had been published here.
    Bridge ["bridge"] {
        /// The broker to take messages from, as mqtt://host:port or mqtts://host:port; none unless given
        url: Option<BridgeAddress> = None, flag "bridge-url" URL;
        /// Which messages, as topic filters with commas between them; $share/group/filter shares them with other servers
        filters: Option<TopicFilters> = None, flag "bridge-filters" FILTERS;
        /// The name of our session at the broker, which must stay the same and be no other client's
        client_id: String = Some("homeport"), flag "bridge-client-id" ID;
        /// Which MQTT the broker speaks
        protocol: BridgeProtocolWord = Some("5"), flag "bridge-protocol" VERSION;
        /// Who we are to the broker, where it asks
        user: Option<String> = None, flag "bridge-user" USER;
        /// The password for the broker
        password: Option<Secret> = None, flag "bridge-password" PASSWORD;
        /// TLS: a PEM file with the certificates of those who issue the broker's; unless given, this machine's own list counts
        tls_ca: Option<PathBuf> = None, flag "bridge-tls-ca" FILE;
        /// TLS: a PEM file with our certificate, where the broker asks for one
        tls_cert: Option<PathBuf> = None, flag "bridge-tls-cert" FILE;
        /// TLS: a PEM file with our certificate's private key
        tls_key: Option<PathBuf> = None, flag "bridge-tls-key" FILE;
        /// Messages of the broker that are being taken in at one time
        inflight_max: Whole<1, 65_535> = Some("256"), flag "bridge-inflight-max" COUNT;
        /// How often the broker hears of us at least, in seconds
        keep_alive_secs: Whole<1, 65_535> = Some("60"), flag "bridge-keep-alive-secs" SECONDS;
        /// How long an MQTT 5 broker is asked to keep messages while we are away, in seconds
        session_expiry_secs: Whole<1, 4_294_967_295> = Some("604800"), flag "bridge-session-expiry-secs" SECONDS;
        /// Whether the server says that it is not ready while the bridge is not connected
        required: bool = Some("false"), flag "bridge-required" BOOLEAN;
    }
}

concern! {
    /// Operators, who manage keys and devices.
    Admin ["admin"] {
        /// The token of operators; made on the first start unless given
        token: Option<Secret> = None, flag "admin-token" TOKEN;
    }
}

concern! {
    /// The console, where people look at the fleet and run the system.
    Console ["console"] {
        /// How long somebody stays signed in, in hours; a restart signs everybody out
        session_hours: Whole<1, 720> = Some("12"), flag "console-session-hours" HOURS;
    }
}

concern! {
    /// How often devices are expected to be heard from: within two of these times a device is online, within six late, and after that silent.
    Fleet ["fleet"] {
        /// Sensors, in seconds
        sensors_every_secs: Whole<1, 31_536_000> = Some("600"), flag "fleet-sensors-every-secs" SECONDS;
        /// Chargers, in seconds
        chargers_every_secs: Whole<1, 31_536_000> = Some("900"), flag "fleet-chargers-every-secs" SECONDS;
        /// Things that send telemetry, in seconds
        telemetry_every_secs: Whole<1, 31_536_000> = Some("300"), flag "fleet-telemetry-every-secs" SECONDS;
        /// Devices that write records, in seconds
        records_every_secs: Whole<1, 31_536_000> = Some("3600"), flag "fleet-records-every-secs" SECONDS;
        /// Apps that refresh their push token, in seconds
        push_every_secs: Whole<1, 31_536_000> = Some("604800"), flag "fleet-push-every-secs" SECONDS;
    }
}

concern! {
    /// The keys that devices prove themselves with.
    ApiKeys ["api_keys"] {
        /// What is hashed with every API key; made on the first start unless given. All servers of one store need the same
        pepper: Option<Secret> = None, flag "api-key-pepper" SECRET, variable "API_KEY_PEPPER";
        /// Requests and messages over MQTT a second, together, that one API key may make; over HTTP more are refused, over MQTT they wait
        rate_per_second: Whole<1, 1_000_000> = Some("1000"), flag "rate-per-second" REQUESTS;
    }
}

concern! {
    /// Sensors and their readings.
    Sensors ["sensors"] {
        /// How long readings are kept, in days; 0 keeps them for ever
        reading_retention_days: Whole<0, 36_500> = Some("90"), flag "reading-retention-days" DAYS;
        /// How often data moves a device's time of last activity, at most, in seconds
        last_seen_every_secs: Whole<0, 86_400> = Some("60"), flag "last-seen-every-secs" SECONDS;
    }
}

concern! {
    /// The record store.
    Records ["records"] {
        /// The record store's table
        table: String = Some("awsh-recordstore-dev"), flag "records-table" TABLE;
    }
}

concern! {
    /// Telemetry of things.
    Telemetry ["telemetry"] {
        /// The table of telemetry
        table: String = Some("van-telemetry"), flag "telemetry-table" TABLE;
    }
}

concern! {
    /// Rules, which say what is done with messages.
    Rules ["rules"] {
        /// A file with rules, in TOML or JSON; they win over those of the same name in the store
        file: Option<PathBuf> = None, flag "rules-file" FILE;
        /// What signs the requests of rules over HTTP; made on the first start unless given
        http_secret: Option<Secret> = None, flag "rules-http-secret" SECRET;
        /// Where notifications of the action sns go, as the ARN of each topic with the address that they are posted to: arn=https://…,arn=https://…
        sns_topics: Tags = None, flag "rules-sns-topics" TOPICS;
        /// Whether requests of rules may go to private, loopback and link-local addresses
        http_private: bool = Some("false"), flag "rules-http-private" BOOLEAN;
    }
}

concern! {
    /// Push: devices of app users and notifications to them.
    Push ["push"] {
        /// The table of device tokens
        table: String = Some("photoeditor-dev-device-tokens"), flag "push-table" TABLE;
        /// Where Expo's push service is
        expo_url: Url = Some("https://exp.host"), flag "push-expo-url" URL;
        /// The access token for Expo's push service, where the Expo project asks for one
        expo_access_token: Option<Secret> = None, flag "push-expo-access-token" TOKEN;
        /// Notifications that may be accepted and not finished at one time; more are refused
        outbox_max: Whole<1, 100_000_000> = Some("100000"), flag "push-outbox-max" COUNT;
        /// Messages that are sent to Expo within any second, at most; Expo takes fewer than 600 of a project
        rate_per_second: Whole<1, 599> = Some("500"), flag "push-rate-per-second" MESSAGES;
        /// How long after sending a receipt is asked for, in seconds
        receipt_delay_secs: Whole<1, 86_400> = Some("900"), flag "push-receipt-delay-secs" SECONDS;
    }
}

concern! {
    /// Alerts, and how people and programs are told of them.
    Alerts ["alerts"] {
        /// Notifications that may wait to be sent at one time; an alert that finds no room is raised and not told
        outbox_max: Whole<1, 100_000_000> = Some("100000"), flag "alerts-outbox-max" COUNT;
        /// How long cleared alerts are kept, in days; 0 keeps them for ever
        retention_days: Whole<0, 36_500> = Some("365"), flag "alerts-retention-days" DAYS;
        /// How long after a start no device is said to be silent, in seconds: after a break of the server all need a while to be heard
        silence_grace_secs: Whole<0, 86_400> = Some("60"), flag "alerts-silence-grace-secs" SECONDS;
        /// What signs webhooks without a secret of their own: whsec_ and 24 to 64 bytes in base64
        webhook_secret: Option<Secret> = None, flag "alerts-webhook-secret" SECRET;
        /// Whether webhooks may reach this machine and private networks
        private_addresses: bool = Some("false"), flag "alerts-private-addresses" BOOLEAN;
        /// The SMTP relay for e-mail; there is none unless given
        smtp_host: Option<String> = None, flag "alerts-smtp-host" HOST;
        /// The relay's port
        smtp_port: Whole<1, 65_535> = Some("587"), flag "alerts-smtp-port" PORT;
        /// How the connection to the relay is encrypted
        smtp_tls: SmtpTlsWord = Some("starttls"), flag "alerts-smtp-tls" MODE;
        /// Who we are to the relay, where it asks
        smtp_user: Option<String> = None, flag "alerts-smtp-user" USER;
        /// The password for the relay
        smtp_password: Option<Secret> = None, flag "alerts-smtp-password" PASSWORD;
        /// The sender of e-mail, like Homeport <homeport@example.com>
        smtp_from: Option<String> = None, flag "alerts-smtp-from" ADDRESS;
    }
}

concern! {
    /// App users, who prove themselves with a JWT.
    Users ["users"] {
        /// What signs their tokens; a token that names another algorithm is refused
        jwt_algorithm: JwtAlgorithm = Some("HS256"), flag "user-jwt-algorithm" ALGORITHM;
        /// HS256: the secret, at least 32 characters; made on the first start unless given
        jwt_secret: Option<Secret> = None, flag "user-jwt-secret" SECRET;
        /// RS256 and ES256: a file with the public keys, as a JWKS
        jwks_file: Option<PathBuf> = None, flag "user-jwks-file" FILE;
        /// RS256 and ES256: an address with the public keys, as a JWKS
        jwks_url: Option<Url> = None, flag "user-jwks-url" URL;
        /// The iss that tokens must have; any unless given
        jwt_issuer: Option<String> = None, flag "user-jwt-issuer" ISSUER;
        /// The aud that tokens must have; any unless given
        jwt_audience: Option<String> = None, flag "user-jwt-audience" AUDIENCE;
        /// How far the clocks of server and issuer may be apart, in seconds
        jwt_leeway_secs: Whole<0, 300> = Some("30"), flag "user-jwt-leeway-secs" SECONDS;
    }
}

concern! {
    /// DynamoDB's own protocol, served over the embedded store.
    Dynamodb ["dynamodb"] {
        /// Where DynamoDB's protocol is served, or off. Without an access key it is served on loopback addresses only, and not to web pages of other sites
        listen: OptionalPort = Some("127.0.0.1:8000"), flag "dynamodb-listen" ADDRESS;
        /// The region in ARNs
        region: String = Some("us-east-1"), flag "dynamodb-region" REGION;
        /// The access key id that requests must be signed with
        access_key_id: Option<String> = None, flag "dynamodb-access-key-id" ID;
        /// Its secret; better given in the environment than on the command line
        secret_access_key: Option<Secret> = None, flag "dynamodb-secret-access-key" SECRET;
        /// A file with further credentials, in TOML, each with a policy of what it may do
        credentials_file: Option<PathBuf> = None, flag "dynamodb-credentials-file" FILE;
        /// Most connections of this port; further ones get 503
        connections: Whole<1, 1_000_000> = Some("1024"), flag "dynamodb-connections" COUNT;
        /// How long a connection may be silent between requests, in seconds
        idle_timeout_secs: Whole<1, 86_400> = Some("120"), flag "dynamodb-idle-timeout-secs" SECONDS;
        /// A directory whose folders are the buckets that tables are exported to and imported from; without it neither works
        buckets: Option<PathBuf> = None, flag "dynamodb-buckets" DIR;
    }
}

concern! {
    /// What is written to standard error.
    Logs ["logs"] {
        /// How much is logged: a level, or levels by module, like info,homeport_server=debug
        filter: String = Some("info,fjall=warn,lsm_tree=warn"), flag "log" FILTER;
        /// How a line looks
        format: LogFormat = Some("pretty"), flag "log-format" FORMAT;
    }
}

words! {
    /// Which store is used.
    StoreKind {
        /// In the data directory
        Embedded = "embedded",
        /// Amazon DynamoDB
        Dynamodb = "dynamodb",
    }
}

words! {
    /// The header in which reverse proxies name the client.
    ForwardedHeaderWord {
        /// A list of addresses, to which each proxy adds one at the end
        XForwardedFor = "x-forwarded-for",
        /// The same in the form of RFC 7239
        Forwarded = "forwarded",
    }
}

words! {
    /// When a write is acknowledged.
    DurabilityWord {
        /// When it is on disk: it survives a power cut
        Sync = "sync",
        /// When the operating system has it, which writes it to disk every 50 ms: a power cut may take the last moments with it
        Relaxed = "relaxed",
    }
}

words! {
    /// What signs the tokens of app users.
    JwtAlgorithm {
        /// A secret that issuer and server share
        Hs256 = "HS256",
        /// RSA keys of the issuer
        Rs256 = "RS256",
        /// Keys of the issuer on the curve P-256
        Es256 = "ES256",
    }
}

words! {
    /// Which MQTT a bridge's broker speaks.
    BridgeProtocolWord {
        /// MQTT 5
        V5 = "5",
        /// MQTT 3.1.1
        V3 = "3.1.1",
    }
}

words! {
    /// How the connection to an SMTP relay is encrypted.
    SmtpTlsWord {
        /// It begins in plain text and is encrypted before anything is said; else nothing is sent
        Starttls = "starttls",
        /// It is encrypted from the start, as on port 465
        Implicit = "implicit",
        /// It is not encrypted
        None = "none",
    }
}

words! {
    /// How a line of the log looks.
    LogFormat {
        /// For people
        Pretty = "pretty",
        /// One JSON object a line, for programs
        Json = "json",
    }
}

/// Lists the concerns once, for the struct of all settings and for those who go through them.
macro_rules! all {
    ($($field:ident: $concern:ident,)+) => {
        /// The effective configuration.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $(pub(crate) $field: $concern,)+
        }

        /// All concerns, in the order in which documents show them.
        pub(crate) const CONCERNS: &[&Concern] = &[$(&$concern::CONCERN),+];

        impl Settings {
            /// Turns the layers' texts into values.
            ///
            /// # Errors
            /// The first value that cannot be, with the place where it was given.
            pub(crate) fn read(values: &Values) -> Result<Self, ConfigError> {
                let settings = Self { $($field: $concern::read(values)?,)+ };
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
    http: Http,
    mqtt: Mqtt,
    bridge: Bridge,
    admin: Admin,
    console: Console,
    fleet: Fleet,
    api_keys: ApiKeys,
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

impl Settings {
    /// Checks what no single setting can tell.
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
        let mqtt = &self.mqtt;
        let has_tls = mqtt.tls_listen.is_some();
        if mqtt.tls_cert.is_some() != has_tls
            || mqtt.tls_key.is_some() != has_tls
            || mqtt.tls_client_ca.is_some() && !has_tls
        {
            return Err(ConfigError::Together(
                "mqtt.tls_listen, mqtt.tls_cert and mqtt.tls_key must be given together, and mqtt.tls_client_ca only with them",
            ));
        }
        self.check_bridge()?;
        self.check_encryption()?;
        self.check_table_key()?;
        let mut receivers = self.rules.sns_topics.0.iter();
        if receivers.any(|(_, url)| url.parse::<Url>().is_err()) {
            return Err(ConfigError::Together(
                "rules.sns_topics gives each topic an address that begins with https:// or http://",
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
                    "users.jwks_file and users.jwks_url are for users.jwt_algorithm RS256 or ES256",
                ));
            }
            JwtAlgorithm::Rs256 | JwtAlgorithm::Es256
                if key_sets != 1 || users.jwt_secret.is_some() =>
            {
                return Err(ConfigError::Together(
                    "users.jwt_algorithm RS256 or ES256 needs one of users.jwks_file and users.jwks_url, and no users.jwt_secret",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_encryption(&self) -> Result<(), ConfigError> {
        let encryption = &self.encryption;
        let given = usize::from(encryption.master_key.is_some())
            + usize::from(encryption.master_key_file.is_some())
            + usize::from(encryption.master_key_command.is_some());
        if given > 1 {
            return Err(ConfigError::Together(
                "only one of encryption.master_key, encryption.master_key_file and encryption.master_key_command may be given",
            ));
        }
        if given > 0 && self.store.kind == StoreKind::Dynamodb {
            return Err(ConfigError::Together(
                "encryption is for store.kind embedded: Amazon DynamoDB encrypts by itself, with store.kms_key_id if that is given",
            ));
        }
        Ok(())
    }

    /// An alias cannot be compared with what a table says of its key, and rights are not granted by one.
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
                "bridge.tls_ca, bridge.tls_cert and bridge.tls_key are for a bridge.url that begins with mqtts://",
            ));
        }
        let is_v3 = bridge.protocol == BridgeProtocolWord::V3;
        if is_v3 && bridge.password.is_some() && bridge.user.is_none() {
            return Err(ConfigError::Together(
                "bridge.password needs bridge.user with bridge.protocol 3.1.1",
            ));
        }
        Ok(())
    }
}
