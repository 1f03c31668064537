import { PostgreSQL, sql } from '@codemirror/lang-sql'
import { setDiagnostics } from '@codemirror/lint'
import { EditorSelection } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { type Ref, useEffect, useImperativeHandle } from 'react'
import { useCodeMirror } from '../parts/code_mirror.ts'
import type { Problem } from './data.ts'

export type Editor = {
  /** Writes at the cursor, in place of what is selected. */
  insert(text: string): void
  /** Shows another query; the keyboard takes it back. */
  replace(text: string): void
  /** Moves the cursor to a position that Postgres named. */
  goTo(position: number): void
}

const height = EditorView.theme({
  '&': { minHeight: '200px', maxHeight: '46vh' },
  '&.cm-focused': { outlineOffset: '-2px' },
  '.cm-content': { padding: '10px 0' },
  '.cm-scroller': { minHeight: '200px', overflow: 'auto' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy light-dark(#c92a2a, #ff8787)',
    textUnderlineOffset: '3px',
  },
})

/** Postgres counts characters, a browser counts halves of them. */
const offsetOf = (text: string, position: number) => [...text].slice(0, position - 1).join('').length
/** The word at which Postgres stumbled, or one sign. */
const endOf = (text: string, from: number) =>
  from + (/^(?:[\w$]+|"[^"]*"?|'[^']*'?|.)/s.exec(text.slice(from))?.[0].length ?? 0)

type Props = {
  readonly value: string
  readonly onChange: (text: string) => void
  readonly onRun: () => void
  readonly problem: Problem | undefined
  readonly handle: Ref<Editor>
}

/** The editor of a query. */
export const SqlEditor = ({ value, onChange, onRun, problem, handle }: Props) => {
  const { host, view } = useCodeMirror(
    {
      value,
      label: 'Query',
      placeholder: 'select …',
      extensions: [sql({ dialect: PostgreSQL }), height],
      onChange,
      onRun,
    },
    [],
  )

  useEffect(() => {
    const editor = view.current
    if (!editor) return
    const text = editor.state.doc.toString()
    const from = problem?.position ? Math.min(offsetOf(text, problem.position), text.length) : undefined
    const marks =
      from === undefined || !problem
        ? []
        : [{ from, to: endOf(text, from), severity: 'error' as const, message: problem.message }]
    editor.dispatch(setDiagnostics(editor.state, marks))
  }, [problem])

  useImperativeHandle(handle, () => ({
    insert(text) {
      view.current?.dispatch(view.current.state.replaceSelection(text))
      view.current?.focus()
    },
    replace(text) {
      const editor = view.current
      if (!editor) return
      editor.dispatch({
        changes: { from: 0, to: editor.state.doc.length, insert: text },
        selection: EditorSelection.cursor(text.length),
      })
      editor.focus()
    },
    goTo(position) {
      const editor = view.current
      if (!editor) return
      const at = Math.min(offsetOf(editor.state.doc.toString(), position), editor.state.doc.length)
      editor.dispatch({ selection: EditorSelection.cursor(at), scrollIntoView: true })
      editor.focus()
    },
  }))
  return <div className="sql-editor" ref={host} />
}
