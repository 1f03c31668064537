import { type DrawerProps, type ModalProps, Drawer as PlainDrawer, Modal as PlainModal } from '@mantine/core'
import { useState } from 'react'
import { Around, AskToLeave, hasUnsaved } from './unsaved.tsx'

/** What a drawer or dialog does before it closes: it asks where a form in it holds unsaved work. */
const useClosing = ({ opened, onClose }: Pick<DrawerProps, 'opened' | 'onClose'>) => {
  const [forms] = useState(() => new Set<{ isDirty: boolean; readonly isInside: boolean }>())
  const [isAsking, setAsking] = useState(false)
  const close = () => {
    // in its own turn: the Escape that asks would answer the question as well
    if (hasUnsaved(forms)) setTimeout(() => setAsking(true))
    else onClose()
  }
  const question = (
    <AskToLeave
      isOpen={isAsking && opened}
      title="Close without saving?"
      onStay={() => setAsking(false)}
      onLeave={() => {
        setAsking(false)
        onClose()
      }}
    />
  )
  // while it asks, Escape and a click beside it answer the question
  return { forms, question, props: { onClose: close, closeOnEscape: !isAsking, closeOnClickOutside: !isAsking } }
}

/** A drawer at the right, for a small edit or the details of a row. */
export const Drawer = ({ children, ...rest }: DrawerProps) => {
  const { forms, question, props } = useClosing(rest)
  return (
    <>
      <PlainDrawer {...rest} {...props}>
        <Around.Provider value={forms}>{children}</Around.Provider>
      </PlainDrawer>
      {question}
    </>
  )
}

/** A dialog with a form. */
export const Dialog = ({ children, ...rest }: ModalProps) => {
  const { forms, question, props } = useClosing(rest)
  return (
    <>
      <PlainModal {...rest} {...props}>
        <Around.Provider value={forms}>{children}</Around.Provider>
      </PlainModal>
      {question}
    </>
  )
}
