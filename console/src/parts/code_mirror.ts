import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView, placeholder as ghost, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { type DependencyList, type RefObject, useEffect, useRef } from 'react'

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.keyword], color: 'light-dark(#0b5394, #8cc0ff)' },
  { tag: tags.string, color: 'light-dark(#1f6e44, #80d9a6)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#9c3d00, #ffb074)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
])
const look = EditorView.theme({
  '&': { fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)' },
  '.cm-content': { minHeight: '84px', caretColor: 'var(--mantine-color-text)' },
  '.cm-gutters': { background: 'var(--side)', color: 'var(--mantine-color-dimmed)', border: 'none' },
  '.cm-placeholder': { color: 'var(--mantine-color-placeholder)' },
})

/** A browser that replaces selected text by itself writes its colours into the page as styles, which the policy refuses and reports. */
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view
    if (event.inputType !== 'insertText' || !event.data || state.selection.main.empty || state.readOnly) return false
    event.preventDefault()
    view.dispatch({ ...state.replaceSelection(event.data), userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

type Code = {
  /** The text that the editor begins with. */
  readonly value: string
  readonly label: string
  readonly placeholder: string
  /** The language, and whatever else this editor has. */
  readonly extensions: Extension
  /** Without it the text is only read. */
  readonly onChange?: ((text: string) => void) | undefined
  /** Runs on Ctrl-Enter. */
  readonly onRun?: (() => void) | undefined
}

/**
 * An editor of code in the element of `host`, made again when one of `deps` differs. In a shadow root CodeMirror takes constructed style sheets, which the
 * policy of the page allows.
 */
export const useCodeMirror = (
  code: Code,
  deps: DependencyList,
): { readonly host: RefObject<HTMLDivElement | null>; readonly view: RefObject<EditorView | undefined> } => {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef(code)
  latest.current = code
  useEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const { value, label, placeholder, extensions, onChange } = latest.current
    view.current = new EditorView({
      doc: value,
      parent: root,
      root,
      extensions: [
        lineNumbers(),
        EditorView.lineWrapping,
        history(),
        bracketMatching(),
        syntaxHighlighting(colours),
        look,
        typeOver,
        extensions,
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
  }, deps)
  return { host, view }
}
