import { Code, SegmentedControl, Text } from '@mantine/core'
import { useState } from 'react'
import type { Report, ReportDetail } from '../../../sdk/src/generated/schemas.ts'
import { Card } from '../parts/page.tsx'
import { useAnswer } from '../parts/stats.tsx'

type Frame = ReportDetail['frames'][number]

const placeOf = ({ file, line, column }: NonNullable<Frame['source']>) => `${file}:${line}:${column}`

/** The lines around a place; the one of the frame is marked, and read out as such. */
const Lines = ({ source }: { source: NonNullable<Frame['source']> }) => (
  <pre className="stack-code mono" tabIndex={0} data-code>
    {source.code.map(({ line, text }) => (
      <span key={line} className="stack-line" data-here={line === source.line || undefined}>
        <span className="stack-number" aria-hidden>
          {line}
        </span>
        <span>
          {line === source.line && <span className="only-read">here: </span>}
          {text}
        </span>
      </span>
    ))}
  </pre>
)

const FrameRow = ({ frame, isOpen }: { frame: Frame; isOpen: boolean }) => {
  const { source } = frame
  if (!source) return <div className="stack-raw mono">{frame.raw}</div>
  const title = (
    <>
      <b>{source.function ?? '(anonymous)'}</b> <span className="stack-place">{placeOf(source)}</span>
    </>
  )
  if (source.code.length === 0) return <div className="stack-title mono">{title}</div>
  return (
    <details className="stack-frame" open={isOpen}>
      <summary className="stack-title mono">{title}</summary>
      <Lines source={source} />
    </details>
  )
}

const isScript = (file: string) => /\.(m?js|cjs|bundle|jsbundle|hbc)$/.test(file)

/** Which maps would show more, and how they come. */
const Missing = ({ report }: { report: ReportDetail }) => {
  const failed = report.bundles.filter(({ source_map }) => source_map === 'failed')
  const missing = report.bundles.filter(({ file, source_map }) => source_map === 'missing' && isScript(file))
  const isShown = report.frames.some(({ source }) => source)
  if (failed.length > 0)
    return (
      <Text size="sm" c="dimmed" mb="xs">
        The source map of {failed[0]?.file} could not be read this time.
      </Text>
    )
  if (isShown || missing.length === 0) return null
  return (
    <Text size="sm" c="dimmed" mb="xs">
      {report.app_version === null
        ? 'Reports with an app_version are shown in their sources, where its source maps were uploaded.'
        : `There is no source map of ${missing[0]?.file.split('/').at(-1)} in ${report.app_version}: `}
      {report.app_version !== null && <Code>trellis sourcemaps push --release {report.app_version}</Code>}
    </Text>
  )
}

/** The stack of a report, in its sources where their maps are known, and as it was sent. */
export const StackCard = ({ report, issueId }: { report: Report; issueId: string }) => {
  const [chosen, choose] = useState<string | null>(null)
  const { data } = useAnswer<ReportDetail>(
    'GET /v1/admin/projects/{projectId}/diagnostics/issues/{issueId}/reports/{reportId}',
    { issueId, reportId: report.id },
  )
  const first = data?.frames.findIndex(({ source }) => source) ?? -1
  const shown = chosen ?? (first >= 0 ? 'source' : 'raw')
  return (
    <Card
      title={report.stack ? 'Stack' : 'Message'}
      actions={
        first >= 0 && (
          <SegmentedControl
            size="xs"
            aria-label="Stack as"
            value={shown}
            onChange={choose}
            data={[
              { value: 'source', label: 'Source' },
              { value: 'raw', label: 'Raw' },
            ]}
          />
        )
      }
    >
      {data && <Missing report={data} />}
      {data && shown === 'source' ? (
        <div>
          <div className="stack-raw mono">{report.message}</div>
          {data.frames.map((frame, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: frames repeat, and never move
            <FrameRow key={index} frame={frame} isOpen={index === first} />
          ))}
        </div>
      ) : (
        <Code block tabIndex={0} data-code>
          {[report.message, report.stack].filter(Boolean).join('\n')}
        </Code>
      )}
    </Card>
  )
}
