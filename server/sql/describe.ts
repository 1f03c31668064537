import type { Client } from 'pg'

/** A column as Postgres describes it, before it has a name for its type. */
export type Field = { readonly name: string; readonly dataTypeID: number; readonly dataTypeModifier: number }

/** The part of pg's Connection that a Submittable writes to. */
type Wire = {
  parse(query: { text: string }): void
  describe(message: { type: 'S' }): void
  sync(): void
  once(event: 'parameterDescription', listener: (message: { parameterCount: number }) => void): void
}

/** What a statement would answer: null where it answers no rows at all. Nothing runs. */
export type Description = { readonly fields: readonly Field[] | null; readonly parameters: number }

/** Parse, Describe, Sync: Postgres reads one statement and says what it would answer. It refuses a text of several. */
class Describing {
  callback: undefined
  readonly #text: string
  readonly #settle: (error: Error | null, description: Description) => void
  #fields: readonly Field[] | null = null
  #parameters = 0

  constructor(text: string, settle: (error: Error | null, description: Description) => void) {
    this.#text = text
    this.#settle = settle
  }

  submit(connection: unknown): null {
    const wire = connection as Wire
    wire.once('parameterDescription', ({ parameterCount }) => {
      this.#parameters = parameterCount
    })
    wire.parse({ text: this.#text })
    wire.describe({ type: 'S' })
    wire.sync()
    return null
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#fields = fields
  }

  /** The last that pg tells of a statement that failed. */
  handleError(error: Error): void {
    this.#settle(error, { fields: null, parameters: 0 })
  }

  handleReadyForQuery(): void {
    this.#settle(null, { fields: this.#fields, parameters: this.#parameters })
  }
}

/** What Postgres says of this statement, as the role and in the transaction of the connection. Rejects with its error. */
export const describe = (client: Client, text: string): Promise<Description> =>
  new Promise((resolve, reject) => {
    const describing = new Describing(text, (error, description) => (error ? reject(error) : resolve(description)))
    client.query(describing as unknown as Parameters<Client['query']>[0])
  })
