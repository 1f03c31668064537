import type { ComponentProps, ReactNode } from 'react'
import { List } from './list.tsx'
import { Card } from './page.tsx'

/** A list in a card, which has its name. */
export const ListCard = <R extends object>({
  title,
  actions,
  name = title,
  ...list
}: Omit<ComponentProps<typeof List<R>>, 'name' | 'isInside'> & {
  title: string
  actions?: ReactNode
  /** What the table is called, where that is not the title. */
  name?: string
}) => (
  <Card title={title} actions={actions} flush>
    <List<R> name={name} isInside {...list} />
  </Card>
)
