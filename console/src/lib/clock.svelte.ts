// The current time, updated every second, for relative times such as “5 min ago”.

let now = $state(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now = Date.now();
}, 1000);

export const clock = {
  get now(): number {
    return now;
  },
};
