import { AreaChart, BarChart } from '@mantine/charts'
import type { Drawn, Point } from './drawn.ts'
import { count, dayOf } from './states.tsx'

const today = () => new Date().toISOString().slice(0, 10)
const unfinished = 'Today, not over yet'

/** The current day is a series of its own, since it is not over. An area is joined to it. */
const rowsOf = (name: string, points: readonly Point[], isArea: boolean) => {
  const isToday = points.at(-1)?.date === today()
  const last = points.length - (isToday ? 1 : 0)
  return points.map(({ date, value }, n) => ({
    day: dayOf(date),
    ...(n < last ? { [name]: value } : {}),
    ...(isToday && (n === last || (isArea && n === last - 1)) ? { [unfinished]: value } : {}),
  }))
}

const common = {
  gridAxis: 'x' as const,
  tickLine: 'none' as const,
  valueFormatter: (value: number) => count(value),
  yAxisProps: { width: 52, allowDecimals: false },
}

/** The part of a chart that Recharts draws, loaded when a page has one. */
export const Drawing = (drawn: Drawn & { readonly height: number }) => {
  const { kind, name, height } = drawn
  if (kind === 'groups')
    return (
      <BarChart
        {...common}
        h={height}
        data={drawn.bars.map(({ label, value }) => ({ label, [name]: value }))}
        dataKey="label"
        series={[{ name, color: 'leaf.6' }]}
        maxBarWidth={44}
      />
    )
  const byDay = { ...common, h: height, dataKey: 'day', xAxisProps: { minTickGap: 24 } }
  if (kind === 'bar')
    return (
      <BarChart
        {...byDay}
        data={rowsOf(name, drawn.points, false)}
        type="stacked"
        series={[
          { name, color: 'leaf.6' },
          { name: unfinished, color: 'leaf.3' },
        ]}
        maxBarWidth={28}
      />
    )
  return (
    <AreaChart
      {...byDay}
      data={rowsOf(name, drawn.points, true)}
      series={[
        { name, color: 'leaf.6' },
        { name: unfinished, color: 'leaf.6', strokeDasharray: '4 4' },
      ]}
      curveType="linear"
      withDots={false}
      fillOpacity={0.16}
    />
  )
}
