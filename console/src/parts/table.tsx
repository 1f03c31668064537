import type { ComponentChildren } from 'preact'

type Props = {
  readonly label: string
  readonly columns: readonly ComponentChildren[]
  readonly children: ComponentChildren
}

/** Rows under the titles of their columns; wider than the page, they scroll by themselves. */
export const Table = ({ label, columns, children }: Props) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
  <section class="scrolls" tabIndex={0} aria-label={label}>
    <table>
      <thead>
        <tr>
          {columns.map((column, n) => (
            <th scope="col" key={n}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </section>
)
