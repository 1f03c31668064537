import { Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Dialog } from './drawer.tsx'
import { done, Failure, useRefresh } from './states.tsx'
import { useUnsaved } from './unsaved.tsx'

type ConfirmProps<Result> = {
  readonly title: string
  /** What happens, and to whom. */
  readonly children: ReactNode
  /** The verb of the button, such as `Delete board`. */
  readonly verb: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** `hasConsented`: the box of `consent` is ticked. */
  readonly run: (hasConsented: boolean) => Promise<Result>
  /** What is said afterwards. */
  readonly said: string | ((result: Result) => string)
  /** The way back, where the result has one. */
  readonly undo?: (result: Result) => Promise<unknown>
  readonly isDisabled?: boolean
  /** What has to be typed first: for what cannot come back. */
  readonly typed?: string
  /** What has to be agreed to as well, after a refusal that can be overridden. */
  readonly consent?: string | undefined
  readonly isDangerous?: boolean
  readonly after?: () => void
  /** What fields in it hold, where that is work: closing it then asks. */
  readonly values?: unknown
}

/** Is there while the dialog is: its values are those that the dialog opened with, until somebody types. */
const Held = ({ values, work }: { values: unknown; work: { isPending: boolean; isSuccess: boolean } }) => {
  useUnsaved(values, work)
  return null
}

/** Takes the focus once when it appears: the button that had it waits for this box. */
const takeFocus = (box: HTMLInputElement | null) => box?.focus()

/** Asks before something is done that people notice, or for the little that it needs. A refusal stays in the dialog. */
export const Confirm = <Result,>({
  title,
  children,
  verb,
  isOpen,
  onClose,
  run,
  said,
  undo,
  typed,
  consent,
  isDangerous = true,
  after,
  isDisabled = false,
  values,
}: ConfirmProps<Result>) => {
  const [text, setText] = useState('')
  const [hasConsented, setConsented] = useState(false)
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: () => run(hasConsented),
    onSuccess: async (result) => {
      onClose()
      after?.()
      done(typeof said === 'string' ? said : said(result), undo && (() => undo(result).then(refresh)))
      await refresh()
    },
  })
  const close = () => {
    setText('')
    setConsented(false)
    work.reset()
    onClose()
  }
  return (
    <Dialog opened={isOpen} onClose={close} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          work.mutate()
        }}
      >
        <Held values={values} work={work} />
        <Stack gap="sm">
          <Text size="sm" component="div">
            {children}
          </Text>
          {typed && (
            <TextInput
              label={`Type “${typed}” to confirm`}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
          )}
          {work.error && <Failure error={work.error} />}
          {consent && (
            <Checkbox
              ref={takeFocus}
              label={consent}
              checked={hasConsented}
              onChange={(event) => setConsented(event.currentTarget.checked)}
            />
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button
              type="submit"
              {...(isDangerous ? { color: 'red.8' } : {})}
              loading={work.isPending}
              disabled={
                isDisabled || (typed !== undefined && text !== typed) || (consent !== undefined && !hasConsented)
              }
              // a field of the dialog comes before it
              {...(typed ? {} : { 'data-autofocus': true })}
            >
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
