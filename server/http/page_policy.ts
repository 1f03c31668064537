import { createHash } from 'node:crypto'

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Headers of a page that loads nothing, runs at most one script of its own and speaks to this server alone. */
export const pageHeaders = (script: string | null, style: string) => ({
  'content-security-policy': [
    "default-src 'none'",
    ...(script === null ? [] : [`script-src ${hashOf(script)}`, "connect-src 'self'"]),
    `style-src ${hashOf(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
})

export const pageStyle = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 26rem; margin: 10vh auto; padding: 0 1rem; }
label { display: block; margin: .75rem 0; }
input:not([type=radio]) { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .4rem; }
fieldset { border: 0; padding: 0; margin: .75rem 0; }
fieldset label { margin: .25rem 0; }
button { font: inherit; padding: .5rem 1rem; }
output { display: block; margin-top: 1rem; }
`
