import { NumberInput } from '@mantine/core'
import { ProjectLink } from '../parts/page.tsx'

/** How much is given. */
export const Amount = ({
  value,
  onChange,
  label = 'Amount',
  min,
}: {
  value: number
  onChange: (value: number) => void
  label?: string
  min?: number
}) => (
  <NumberInput
    label={label}
    value={value}
    onChange={(next) => onChange(Number(next) || 0)}
    allowDecimal={false}
    thousandSeparator=","
    {...(min === undefined ? {} : { min })}
    data-autofocus
  />
)

/** What is said where there is nothing to give. */
export const None = ({ what, to }: { what: string; to: string }) => (
  <>
    This project has no {what} yet. <ProjectLink to={to}>Make one</ProjectLink> first.
  </>
)
