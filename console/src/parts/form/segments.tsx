import { SegmentedControl, type SegmentedControlProps } from '@mantine/core'

/** Choices beside each other under a label that stands elsewhere. On a phone they are scrolled, and do not widen the page. */
export const Segments = ({
  labelId,
  data,
  value,
  onChange,
}: { readonly labelId: string } & Required<Pick<SegmentedControlProps, 'data' | 'value' | 'onChange'>>) => (
  <div className="scroll-x">
    <SegmentedControl aria-labelledby={labelId} data={data} value={value} onChange={onChange} />
  </div>
)
