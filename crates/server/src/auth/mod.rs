//! Authentication: turns the credentials of a request into a [`Caller`]. What a caller may do is in
//! [`permission`](self::permission).

mod admin_token;
mod authenticated;
mod caller;
pub(crate) mod needs;
mod permission;
mod rate_limit;
pub(crate) mod session_cookie;
mod sign_in_limits;
mod unknown_keys;
mod user_tokens;

use std::net::{IpAddr, Ipv4Addr};

use axum::http::{Extensions, HeaderMap, header};
use homeport_listen::Connection;

pub use admin_token::AdminToken;
pub(crate) use admin_token::TokenRejected;
pub(crate) use authenticated::{
    ApiKeys, ApiKeysOrPeople, Authenticated, Everyone, Everywhere, Myself, OwnSession, People,
    RouteSystem, UsersOrPeople,
};
pub(crate) use caller::Caller;
pub(crate) use needs::Action;
pub(crate) use permission::{Forbidden, Subject};
pub use rate_limit::{RateLimit, RateLimiter};
pub(crate) use sign_in_limits::SignInLimits;
pub(crate) use unknown_keys::KeyRejected;
pub use unknown_keys::KeyVerifier;
pub(crate) use user_tokens::UserTokenError;
pub use user_tokens::{UserAlgorithm, UserKeys, UserTokenSettings, UserTokens};

/// The address of the client. Requests without a known connection share the unspecified address.
pub(crate) fn client_address(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<Connection>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), Connection::client)
}

/// Whether a request came over TLS up to this server.
pub(crate) fn is_tls(extensions: &Extensions) -> bool {
    extensions
        .get::<Connection>()
        .is_some_and(Connection::is_tls)
}

/// The value of a header, if it is text.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The bearer token of a request. The scheme's name is case-insensitive.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = header_text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("Bearer")
        .then_some(token.trim())
}
