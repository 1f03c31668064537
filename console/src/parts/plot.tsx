import { texts } from '../texts.ts'

export type Point = { readonly label: string; readonly value: number }

const width = 640
const height = 160
const base = height - 20

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })

/** Bars over their labels, drawn without inline styles, which the policy of the page forbids; the same as a table for who does not see them. */
export const Plot = ({ title, points }: { title: string; points: readonly Point[] }) => {
  const most = Math.max(1, ...points.map(({ value }) => value))
  const step = width / Math.max(1, points.length)
  const sum = points.reduce((total, { value }) => total + value, 0)
  const [first, last] = [points[0], points.at(-1)]
  return (
    <figure class="plot">
      <figcaption>
        {title} <b>{number.format(points.at(-1)?.value ?? 0)}</b>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={texts.plotOf(title, points.length, number.format(most), number.format(sum))}
      >
        <line x1="0" y1={base} x2={width} y2={base} class="axis" />
        {points.map(({ label, value }, index) => {
          const tall = (value / most) * (base - 16)
          return (
            <rect
              key={label}
              x={index * step + 1}
              y={base - tall}
              width={Math.max(1, step - 2)}
              height={tall}
              class="bar"
            >
              <title>{`${label}: ${number.format(value)}`}</title>
            </rect>
          )
        })}
        <text x="0" y="10">
          {number.format(most)}
        </text>
        {first && (
          <text x="0" y={height - 5}>
            {first.label}
          </text>
        )}
        {last && last !== first && (
          <text x={width} y={height - 5} class="end">
            {last.label}
          </text>
        )}
      </svg>
      <details>
        <summary>{texts.asTable}</summary>
        <table>
          <tbody>
            {points.map(({ label, value }) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td>{number.format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}
