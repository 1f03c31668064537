import type { ReactNode } from 'react'

/** The name of a row whose details open beside the list. */
export const RowButton = ({
  onClick,
  isCode = false,
  children,
}: {
  onClick: () => void
  isCode?: boolean
  children: ReactNode
}) => (
  <button type="button" className={isCode ? 'row-button mono' : 'row-button'} onClick={onClick}>
    {children}
  </button>
)
