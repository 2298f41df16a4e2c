// Who is signed in, and with which permissions. The session itself is a cookie that no script can read.
import { RequestError, request, listenForSessionEnd } from "../api/request";
import type { CurrentSession } from "../api/types";

type SessionState = "unknown" | "signed-out" | "signed-in";

/** What someone signs in with: name and password, with a code if there is a second factor, or the admin token. */
export type SignIn = { name: string; password: string; code?: string } | { token: string };

let state = $state<SessionState>("unknown");
let current = $state.raw<CurrentSession | null>(null);
let ended = $state(false);
let failure = $state<string | null>(null);

export const session = {
  get state(): SessionState {
    return state;
  },
  /** The name of the person; `admin` for the admin token. */
  get name(): string {
    return current?.name ?? "";
  },
  /** Whether the admin token signed in, which has no account. */
  get isAdminToken(): boolean {
    return current?.is_admin_token ?? false;
  },
  /** Whether the session expired or was revoked, which the sign-in page explains. */
  get hasEnded(): boolean {
    return ended;
  },
  /** Why the session could not be checked. */
  get failure(): string | null {
    return failure;
  },
  /** Whether a permission applies to something: all of the server, or what the roles are limited to. */
  may(permission: string): boolean {
    return current?.may.includes(permission) ?? false;
  },
  /** Whether a permission applies to the whole server. */
  mayEverywhere(permission: string): boolean {
    return current?.may_everywhere.includes(permission) ?? false;
  },
};

listenForSessionEnd(() => {
  if (state === "signed-in") ended = true;
  state = "signed-out";
});

export async function checkSession(): Promise<void> {
  failure = null;
  try {
    current = await request<CurrentSession>("/v1/session");
    state = "signed-in";
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) state = "signed-out";
    else failure = error instanceof Error ? error.message : String(error);
  }
}

export async function signIn(body: SignIn): Promise<void> {
  await request("/v1/session", { method: "POST", body });
  ended = false;
  await checkSession();
}

/** Creates the first administrator, who is then signed in. */
export async function setUp(token: string, name: string, password: string): Promise<void> {
  await request("/v1/setup", { method: "POST", body: { token, name, password } });
  ended = false;
  await checkSession();
}

export async function signOut(): Promise<void> {
  await request("/v1/session", { method: "DELETE" });
  ended = false;
  state = "signed-out";
}
