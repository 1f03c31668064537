import { Input } from '@mantine/core'
import type { ReactNode } from 'react'

/** A help whose code, between backticks, looks like code. */
export const Help = ({ text }: { text: string }) => (
  <>
    {text.split('`').map((part, at) =>
      at % 2 === 0 ? (
        part
      ) : (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text
        <code key={at}>{part}</code>
      ),
    )}
  </>
)

/** A label with its help, for what is no single control. */
export const Labelled = ({
  id,
  label,
  help,
  error,
  isRequired,
  children,
}: {
  id: string
  label: string
  help: string | undefined
  error?: ReactNode
  isRequired?: boolean
  children: ReactNode
}) => (
  <Input.Wrapper
    label={label}
    labelElement="div"
    labelProps={{ id }}
    description={help && <Help text={help} />}
    error={error}
    required={isRequired ?? false}
  >
    {children}
  </Input.Wrapper>
)
