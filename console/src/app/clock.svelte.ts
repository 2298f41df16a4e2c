// One clock for everything that says how long ago something was.

let now = $state(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now = Date.now();
}, 1000);

export const clock = {
  get now(): number {
    return now;
  },
};
