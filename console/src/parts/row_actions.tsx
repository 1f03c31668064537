import { Menu } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { Confirm } from './dialogs.tsx'
import { Drawer } from './drawer.tsx'
import type { FieldWords } from './form/field.ts'
import { OperationForm } from './form/form.tsx'
import { More } from './more.tsx'
import { useProject } from './page.tsx'
import { done } from './states.tsx'

/** Something that can be done with one row, by a form in a drawer or after a question. */
export type RowAction = {
  readonly title: string
  /** `POST /v1/admin/projects/{projectId}/...`, with the parameter of the row. */
  readonly operation: string
  readonly verb: string
  /** What is said afterwards. */
  readonly said: string
  /** A question before an action that takes no input. Without it the action is a form. */
  readonly asks?: (row: Row) => ReactNode
  readonly isOffered?: (row: Row) => boolean
  readonly words?: Readonly<Record<string, FieldWords>>
  readonly preset?: (row: Row) => Row
  /** What an action with a question sends. */
  readonly body?: Row
  /** Takes back what an action with a question did. */
  readonly undo?: () => Promise<unknown>
}

/** The actions of a row, as a menu; each opens its form or its question. */
export const RowActions = ({
  row,
  path,
  actions,
  menu = [],
  isQuiet = false,
  children,
}: {
  row: Row
  path: Readonly<Record<string, string>>
  actions: readonly RowAction[]
  /** What the page itself does. */
  menu?: readonly { readonly title: string; readonly run: () => void }[]
  /** In a row of a table: without a frame. */
  isQuiet?: boolean
  children?: ReactNode
}) => {
  const { path: project } = useProject()
  const [current, setCurrent] = useState<RowAction>()
  const [isOpen, setOpen] = useState(false)
  const offered = actions.filter(({ isOffered }) => isOffered?.(row) ?? true)
  const run = (action: RowAction) => {
    setCurrent(action)
    setOpen(true)
  }
  return (
    <>
      {(offered.length > 0 || menu.length > 0 || children) && (
        <More isSmall={isQuiet}>
          {offered.map((action) => (
            <Menu.Item key={action.title} onClick={() => run(action)}>
              {action.title}
            </Menu.Item>
          ))}
          {menu.map(({ title, run: open }) => (
            <Menu.Item key={title} onClick={open}>
              {title}
            </Menu.Item>
          ))}
          {children}
        </More>
      )}
      <Drawer
        opened={isOpen && current?.asks === undefined}
        onClose={() => setOpen(false)}
        title={current?.title ?? ''}
      >
        {current && (
          <OperationForm
            key={current.operation}
            operation={current.operation}
            path={path}
            verb={current.verb}
            words={current.words ?? {}}
            preset={current.preset?.(row) ?? {}}
            onCancel={() => setOpen(false)}
            onDone={() => {
              setOpen(false)
              done(current.said)
            }}
          />
        )}
      </Drawer>
      <Confirm
        title={current?.title ?? ''}
        verb={current?.verb ?? ''}
        said={current?.said ?? ''}
        isOpen={isOpen && current?.asks !== undefined}
        isDangerous={false}
        onClose={() => setOpen(false)}
        {...(current?.undo ? { undo: current.undo } : {})}
        run={() =>
          callAny(current?.operation ?? '', {
            path: { ...project, ...path },
            ...(current?.operation.startsWith('DELETE') ? {} : { body: current?.body ?? {} }),
          })
        }
      >
        {current?.asks?.(row)}
      </Confirm>
    </>
  )
}
