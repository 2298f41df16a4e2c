//! What callers may do, and the least role for it: the table that `docs/permissions.md` shows. Each action is also a
//! type, by which a route states what it needs.

use homeport_systems::people::Role;

/// An action that routes state as a type.
pub(crate) trait Needed {
    const ACTION: Action;
}

/// Declares the actions with the least role of a person for each.
macro_rules! actions {
    ($($(#[doc = $doc:literal])* $name:ident, $text:literal: $role:ident;)*) => {
        /// What a caller wants to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Action {
            $($(#[doc = $doc])* $name,)*
        }

        impl Action {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            /// The least role of a person for it.
            pub(crate) fn least_role(self) -> Role {
                match self {
                    $(Self::$name => Role::$role,)*
                }
            }

            /// Its name in the session answer, by which the console knows what to show.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }

        $(
            $(#[doc = $doc])*
            pub(crate) struct $name;

            impl Needed for $name {
                const ACTION: Action = Action::$name;
            }
        )*
    };
}

actions! {
    /// Read devices, data, alerts, rules and the store's time.
    Read, "read": Viewer;
    /// Store or send data, as devices and services do.
    Write, "write": Operator;
    /// Send commands to devices.
    Command, "command": Operator;
    /// Send broadcasts to the phones of all users, and cancel them.
    Broadcast, "broadcast": Operator;
    /// Acknowledge, snooze and assign alerts, and comment on them.
    Acknowledge, "acknowledge": Operator;
    /// Create, change or delete what data belongs to, and data.
    Manage, "manage": Operator;
    /// Create, change and delete alert rules, and see where they send notifications.
    ManageAlertRules, "manage_alert_rules": Operator;
    /// Create, change, delete, test and replay rules.
    ManageRules, "manage_rules": Operator;
    /// List, create and revoke API keys.
    ManageApiKeys, "manage_api_keys": Operator;
    /// Read and change the items of all tables.
    ManageTables, "manage_tables": Administrator;
    /// Confirm the clock, and other changes of the server itself.
    ManageServer, "manage_server": Administrator;
    /// Create, change and delete people.
    ManagePeople, "manage_people": Administrator;
}
