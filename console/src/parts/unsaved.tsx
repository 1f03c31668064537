import { Button, Group, Modal, Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { createContext, useContext, useLayoutEffect, useRef, useState } from 'react'

/** A form that is shown: whether it holds what somebody typed and nobody saved, and whether it is in a drawer. */
type Form = { isDirty: boolean; readonly isInside: boolean }

const forms = new Set<Form>()

/** The forms of the drawer or dialog around them. */
export const Around = createContext<Set<Form> | undefined>(undefined)

/**
 * Tells that a form holds unsaved work: its values are other than they were when it appeared. While what it sends is on its way, and after that, it holds none.
 * Leaving the page, closing the drawer and closing the tab then ask first.
 */
export const useUnsaved = (
  values: unknown,
  work?: { readonly isPending: boolean; readonly isSuccess: boolean },
): void => {
  const around = useContext(Around)
  const now = JSON.stringify(values)
  const [first] = useState(now)
  const form = useRef<Form>({ isDirty: false, isInside: around !== undefined })
  const isDirty = now !== first && !work?.isPending && !work?.isSuccess
  useLayoutEffect(() => {
    form.current.isDirty = isDirty
  })
  useLayoutEffect(() => {
    const own = form.current
    forms.add(own)
    around?.add(own)
    return () => {
      forms.delete(own)
      around?.delete(own)
    }
  }, [around])
}

export const hasUnsaved = (some: Iterable<Form>): boolean => [...some].some(({ isDirty }) => isDirty)

/** The question before unsaved work is lost. */
export const AskToLeave = ({
  isOpen,
  title,
  onStay,
  onLeave,
}: {
  isOpen: boolean
  title: string
  onStay: () => void
  onLeave: () => void
}) => (
  <Modal opened={isOpen} onClose={onStay} title={title} zIndex={300}>
    <Text size="sm">What you typed is not saved.</Text>
    <Group justify="flex-end" gap="xs" mt="md">
      <Button variant="default" onClick={onStay} data-autofocus>
        Stay
      </Button>
      <Button color="red.8" onClick={onLeave}>
        Leave
      </Button>
    </Group>
  </Modal>
)

/** Once in the frame of all pages: asks before a link, the browser's "back" or the end of the tab takes unsaved work away. */
export const Leaving = () => {
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next, action }) => {
      // a session that has ended is over on every page
      if (/\/sign-in$/.test(next.pathname)) return false
      if (current.pathname !== next.pathname) return hasUnsaved(forms)
      // "back" closes a drawer that stands in the address; a page's own tabs and steps keep its form
      const isBack = action !== 'PUSH' && action !== 'REPLACE'
      return isBack && hasUnsaved([...forms].filter(({ isInside }) => isInside))
    },
    enableBeforeUnload: () => hasUnsaved(forms),
    withResolver: true,
  })
  return (
    <AskToLeave
      isOpen={leaving.status === 'blocked'}
      title="Leave this page?"
      onStay={() => leaving.reset?.()}
      onLeave={() => leaving.proceed?.()}
    />
  )
}
