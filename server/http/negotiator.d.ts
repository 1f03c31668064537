/** What is used of `negotiator` 1; `@types/negotiator` describes 0.6, which has no options. */
declare module 'negotiator' {
  type Request = { readonly headers: Readonly<Record<string, string | string[] | undefined>> }
  export class Negotiator {
    constructor(request: Request)
    /** The most wanted of the available ones; of several that are wanted equally the first that is preferred. */
    encoding(available: readonly string[], options: { readonly preferred: readonly string[] }): string | undefined
    /** As they were written, the most wanted first. */
    languages(): string[]
  }
}
