// Whether the user is signed in. The session itself is a cookie that no script can read.
import { RequestError, request, listenForSessionEnd } from "../api/request";

type SessionState = "unknown" | "signed-out" | "signed-in";

let state = $state<SessionState>("unknown");
let ended = $state(false);
let failure = $state<string | null>(null);

export const session = {
  get state(): SessionState {
    return state;
  },
  /** Whether the session expired or was revoked, which the sign-in page explains. */
  get hasEnded(): boolean {
    return ended;
  },
  /** Why the session could not be checked. */
  get failure(): string | null {
    return failure;
  },
};

listenForSessionEnd(() => {
  if (state === "signed-in") ended = true;
  state = "signed-out";
});

export async function checkSession(): Promise<void> {
  failure = null;
  try {
    await request("/v1/session");
    state = "signed-in";
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) state = "signed-out";
    else failure = error instanceof Error ? error.message : String(error);
  }
}

export async function signIn(token: string): Promise<void> {
  await request("/v1/session", { method: "POST", body: { token } });
  ended = false;
  state = "signed-in";
}

export async function signOut(): Promise<void> {
  await request("/v1/session", { method: "DELETE" });
  ended = false;
  state = "signed-out";
}
