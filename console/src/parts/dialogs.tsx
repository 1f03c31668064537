import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
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
  readonly run: () => Promise<Result>
  /** What is said afterwards. */
  readonly said: string | ((result: Result) => string)
  /** The way back, where the result has one. */
  readonly undo?: (result: Result) => Promise<unknown>
  readonly isDisabled?: boolean
  /** What has to be typed first: for what cannot come back. */
  readonly typed?: string
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
  isDangerous = true,
  after,
  isDisabled = false,
  values,
}: ConfirmProps<Result>) => {
  const [text, setText] = useState('')
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: run,
    onSuccess: async (result) => {
      onClose()
      after?.()
      done(typeof said === 'string' ? said : said(result), undo && (() => undo(result).then(refresh)))
      await refresh()
    },
  })
  const close = () => {
    setText('')
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
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button
              type="submit"
              {...(isDangerous ? { color: 'red.8' } : {})}
              loading={work.isPending}
              disabled={isDisabled || (typed !== undefined && text !== typed)}
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
