export type Places = Readonly<Record<'api' | 'console' | 'reference' | 'health' | 'data', string>>

/** What a terminal shows after the start. The first start of an installation adds the next steps. */
export const banner = (
  { api, console, reference, health, data }: Places,
  milliseconds: number,
  firstUrl: string | null,
) => `
  Trellis is running (started in ${milliseconds} ms)

    API        ${api}
    Console    ${console}
    Reference  ${reference}
    Health     ${health}
    Data       ${data}
${firstUrl === null ? '' : nextSteps(firstUrl)}
  Ctrl-C stops everything.

`

const nextSteps = (url: string) => `
  Next: sign up at ${url}/console, or open an account here and keep the access_token of the answer.

    curl -s ${url}/v1/auth/developer/signup -H 'content-type: application/json' \\
         -d '{"email":"you@example.com","password":"a long passphrase"}'

  Then follow docs/quickstart.md, or watch the whole story: npm run demo
`
