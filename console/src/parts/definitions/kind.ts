import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Row } from '../../api.ts'
import type { FieldWords } from '../form/field.ts'
import type { Column } from '../list.tsx'
import type { RowAction } from '../row_actions.tsx'

/** Definitions of one kind: leaderboards, streaks, items. Their list, form and page are made from this. */
export type Kind = {
  /** Below `/v1/admin/projects/{projectId}/`. */
  readonly path: string
  /** The name of the path's parameter for one of them. */
  readonly id: string
  /** The page of their list in the console. */
  readonly at: string
  readonly noun: string
  readonly plural: string
  readonly icon: LucideIcon
  readonly about: string
  /** What they are good for, where there are none yet. */
  readonly empty: string
  readonly columns: readonly Column<Row>[]
  readonly titleOf?: (row: Row) => string
  readonly keyOf?: (row: Row) => string
  /** The query parameter of a search, where the list has one. */
  readonly search?: string
  /** What the list is always asked with. */
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly words?: Readonly<Record<string, FieldWords>>
  readonly preset?: Row
  /** The method that changes one. */
  readonly update?: 'PATCH' | 'PUT'
  readonly canDelete?: boolean
  /** Where the deletion of one that is in use is refused, and `?force=true` takes it from its users first. */
  readonly inUse?: {
    /** The code of the refusal. */
    readonly code: string
    /** The list of what ends with it, such as `GET /v1/.../assignments`. */
    readonly operation: string
    /** Says how many there are. */
    readonly refusal: (total: number) => string
    /** What has to be agreed to. */
    readonly consent: (total: number) => string
  }
  readonly actions?: readonly RowAction[]
  /** Beside the facts of one: statistics, members, runs. */
  readonly Detail?: (props: { row: Row }) => ReactNode
  readonly facts?: (row: Row) => readonly (readonly [string, ReactNode])[]
  readonly tools?: () => ReactNode
  /** Beside "Edit" of one. */
  readonly Buttons?: (props: { row: Row }) => ReactNode
  /** Where one of them is read, if not at its own path, and where it is in the answer. */
  readonly one?: { readonly operation: string; readonly row: (data: Row) => Row }
  /** Whether one is shown as the sum of what its page shows, without a card of settings. */
  readonly hasNoFacts?: boolean
}

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** What people call one. */
export const titleOf = (kind: Kind, row: Row) =>
  kind.titleOf?.(row) ?? String(row['name'] ?? row['key'] ?? row['code'] ?? row['id'])

/** What one is found by: in the path of the API, and in the address of its page. */
export const keyOf = (kind: Kind, row: Row) => kind.keyOf?.(row) ?? String(row['id'] ?? row['key'])

/** The path of the list in the API. */
export const listOf = ({ path }: Kind) => `/v1/admin/projects/{projectId}/${path}`

/** The path of one in the API. */
export const rowOf = (kind: Kind) => `${listOf(kind)}/{${kind.id}}`
