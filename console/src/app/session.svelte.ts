// Whether someone is signed in. The session itself is a cookie that no script can read.
import { RequestError, request, whenSessionEnds } from "../api/request";

type State = "unknown" | "out" | "in";

let state = $state<State>("unknown");
let ended = $state(false);
let failure = $state<string | null>(null);

export const session = {
  get state(): State {
    return state;
  },
  /** Signed in before, and now refused: the sign-in page says so. */
  get hasEnded(): boolean {
    return ended;
  },
  /** Why it is not known whether someone is signed in. */
  get failure(): string | null {
    return failure;
  },
};

whenSessionEnds(() => {
  if (state === "in") ended = true;
  state = "out";
});

export async function look(): Promise<void> {
  failure = null;
  try {
    await request("/v1/session");
    state = "in";
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) state = "out";
    else failure = error instanceof Error ? error.message : String(error);
  }
}

export async function signIn(token: string): Promise<void> {
  await request("/v1/session", { method: "POST", body: { token } });
  ended = false;
  state = "in";
}

export async function signOut(): Promise<void> {
  await request("/v1/session", { method: "DELETE" });
  ended = false;
  state = "out";
}
