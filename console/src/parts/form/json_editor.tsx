import { json, jsonParseLinter } from '@codemirror/lang-json'
import { linter } from '@codemirror/lint'
import { useCodeMirror } from '../code_mirror.ts'

const checked = linter((editor) => (editor.state.doc.length === 0 ? [] : jsonParseLinter()(editor)))

type Props = {
  readonly value: string
  readonly label: string
  /** Without it the text is only read. */
  readonly onChange?: (text: string) => void
  readonly placeholder?: string
}

/** JSON with colours, checked while it is typed. */
export const JsonEditor = ({ value, onChange, label, placeholder = '' }: Props) => {
  const { host } = useCodeMirror({ value, label, placeholder, extensions: [json(), checked], onChange }, [
    label,
    placeholder,
  ])
  return <div className="code" ref={host} />
}
