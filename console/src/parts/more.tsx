import { ActionIcon, Menu } from '@mantine/core'
import { Ellipsis } from 'lucide-react'
import type { ReactNode } from 'react'

/** The rarer actions of a page or a row, behind three dots. */
export const More = ({
  children,
  label = 'More actions',
  isSmall = false,
}: {
  children: ReactNode
  label?: string
  isSmall?: boolean
}) => (
  <Menu>
    <Menu.Target>
      <ActionIcon
        variant={isSmall ? 'subtle' : 'default'}
        {...(isSmall ? { color: 'gray' } : {})}
        size={isSmall ? 28 : 36}
        aria-label={label}
      >
        <Ellipsis size={16} />
      </ActionIcon>
    </Menu.Target>
    <Menu.Dropdown>{children}</Menu.Dropdown>
  </Menu>
)
