import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { PostgreSQL, sql } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { linter } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { EditorView, placeholder as ghost, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

export const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.keyword], color: 'light-dark(#0b5394, #8cc0ff)' },
  { tag: tags.string, color: 'light-dark(#1f6e44, #80d9a6)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#9c3d00, #ffb074)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
])
export const look = EditorView.theme({
  '&': { fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)' },
  '.cm-content': { minHeight: '84px', caretColor: 'var(--mantine-color-text)' },
  '.cm-gutters': { background: 'var(--side)', color: 'var(--mantine-color-dimmed)', border: 'none' },
  '.cm-placeholder': { color: 'var(--mantine-color-placeholder)' },
})

type Props = {
  readonly value: string
  readonly label: string
  readonly onChange?: (text: string) => void
  readonly language?: 'json' | 'sql'
  readonly placeholder?: string
  /** Runs on Ctrl-Enter. */
  readonly onRun?: () => void
}

/** Text with colours, checked while it is typed. In a shadow root CodeMirror takes constructed style sheets, which the policy of the page allows. */
export const CodeEditor = ({ value, onChange, label, language = 'json', placeholder = '', onRun }: Props) => {
  const host = useRef<HTMLDivElement>(null)
  const latest = useRef({ onChange, onRun })
  latest.current = { onChange, onRun }
  const view = useRef<EditorView>(undefined)
  useEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const languages =
      language === 'sql'
        ? [sql({ dialect: PostgreSQL })]
        : [json(), linter((editor) => (editor.state.doc.length === 0 ? [] : jsonParseLinter()(editor)))]
    view.current = new EditorView({
      doc: value,
      parent: root,
      root,
      extensions: [
        lineNumbers(),
        EditorView.lineWrapping,
        history(),
        bracketMatching(),
        languages,
        syntaxHighlighting(colours),
        look,
        ghost(placeholder),
        EditorState.readOnly.of(onChange === undefined),
        keymap.of([
          {
            key: 'Mod-Enter',
            run: () => {
              latest.current.onRun?.()
              return latest.current.onRun !== undefined
            },
          },
          ...defaultKeymap,
          ...historyKeymap,
        ]),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current.onChange?.(update.state.doc.toString())
        }),
      ],
    })
    return () => view.current?.destroy()
  }, [label, language, placeholder])
  return <div className="code" ref={host} />
}
