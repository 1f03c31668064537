/** What is used of `oidc-provider` 9, which brings no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'
  // biome-ignore lint/style/noDefaultExport: the package has one
  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    callback(): RequestListener
  }
}
