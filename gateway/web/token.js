// The caller's token. It lives as long as the tab; behind a proxy that signs people in there is none.

const KEY = "sluice.token";

export function held() {
  return sessionStorage.getItem(KEY);
}

export function keep(token) {
  sessionStorage.setItem(KEY, token);
}

export function forget() {
  sessionStorage.removeItem(KEY);
}

/** Whether a header can carry it. */
export function isToken(text) {
  return /^[\w.~+/=-]{1,8192}$/.test(text);
}
