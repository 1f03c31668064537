import type { UseFormReturnType } from '@mantine/form'
import type { ComponentType, ReactNode } from 'react'
import { type Document, type Schema, wordsOf } from './schema.ts'

export type Values = Record<string, unknown>
export type FormState = UseFormReturnType<Values>

/** An editor for values of one shape, such as filters: `editors.ts` says for which. */
export type Editor = ComponentType<{
  readonly label: string
  readonly help: string | undefined
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly error: ReactNode
  /** The object that the value is in: the event of a filter stands there. */
  readonly beside: Values
}>
/** The editor of a named schema of the document, or of a property that may be any object. */
export type EditorOf = (
  schema: string | undefined,
  property: string,
  isAnyObject: boolean,
  path: string,
) => Editor | undefined

/** Words that are better here than those of the document. */
export type FieldWords = {
  readonly title?: string
  readonly help?: string
  readonly section?: string
  readonly choices?: Readonly<Record<string, string>>
  readonly from?: string
  readonly isHidden?: boolean
}

/** What all fields of a form share. */
export type FormProps = {
  readonly document: Document
  readonly form: FormState
  readonly editorOf: EditorOf
  /** By path, without the numbers of items. */
  readonly words: Readonly<Record<string, FieldWords>>
}

/** What stands around a control that is not one of Mantine's. */
export type Frame = {
  readonly path: string
  readonly label: string
  readonly help: string | undefined
  readonly error: ReactNode
  readonly isRequired: boolean
}

/** The value of one property, for the control that its schema asks for. */
export type Control = {
  readonly name: string
  readonly schema: Schema
  readonly words: FieldWords
  readonly frame: Frame
  readonly value: unknown
  readonly set: (value: unknown) => void
  /** For a control of Mantine: label, help, error, and what the form listens to. */
  readonly common: {
    readonly label: string
    readonly description: ReactNode
    readonly error: ReactNode
    readonly required: boolean
    readonly name: string
    readonly placeholder?: string
  }
}

/** The controls of the properties of an inner object, which a control of several shapes or items shows. */
export type InnerFields = (schema: Schema, path: string) => ReactNode

export const valueAt = (values: Values, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Values | undefined)?.[name], values)

export const choiceLabel = (value: unknown, words: FieldWords): string =>
  words.choices?.[String(value)] ?? wordsOf(String(value))

/** Names whose texts are written in one line, however long they may be. */
export const isOneLine = (name: string): boolean => /(^|_)(url|name|title|key|identifier)$/.test(name)
