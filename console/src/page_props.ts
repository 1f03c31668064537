import type { Document } from './document.ts'

/** What every page made by hand is given. */
export type PageProps = {
  readonly document: Document
  readonly projectId: string
  readonly address: URL
  readonly id: string
}
