import { describe, expect, test } from 'vitest'
import { banner } from '#server/banner.ts'
import { announce, createLog, readableLine } from '#server/log.ts'

const outputOf = (isTTY: boolean) => {
  const lines: string[] = []
  return { isTTY, lines, write: (text: string) => lines.push(text) }
}

describe('log lines', () => {
  test('are JSON where standard output is no terminal, announcements at any level too', () => {
    const output = outputOf(false)
    createLog({ LOG_LEVEL: 'warn' }, output).warn({ status: 500 }, 'a request failed')
    createLog({ LOG_LEVEL: 'warn' }, output).info('a request')
    announce('Trellis is running', { api: 'http://127.0.0.1:4000/v1' }, 'a banner', output)
    expect(output.lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, status: 500, msg: 'a request failed' },
      { level: 30, api: 'http://127.0.0.1:4000/v1', msg: 'Trellis is running' },
    ])
  })

  test('are text on a terminal', () => {
    const output = outputOf(true)
    createLog({ LOG_LEVEL: 'info' }, output)
      .child({ request: 'r1' })
      .warn({ status: 500, route: 'GET /client/users/me', project: undefined }, 'a request failed')
    announce('Trellis is running', { api: 'http://127.0.0.1:4000/v1' }, '\n  A banner\n', output)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colors
    const plain = output.lines.map((line) => line.replace(/\x1b\[\d+m/g, ''))
    expect(plain[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} WARN {2}a request failed request=r1 status=500 route="GET \/client\/users\/me"\n$/,
    )
    expect(plain[1]).toBe('\n  A banner\n')
  })

  test('name what failed, with its stack on lines of its own', () => {
    const line = {
      level: 50,
      time: '2026-11-22T10:00:00.000Z',
      process: 1,
      msg: 'failed',
      error: 'Error: no\n    at a.ts:1',
    }
    expect(readableLine(JSON.stringify(line), false)).toBe(
      '10:00:00.000 ERROR failed error="Error: no"\n    at a.ts:1\n',
    )
  })

  test('have the colour of their level, and none with NO_COLOR', () => {
    const line = { level: 40, time: '2026-11-22T10:00:00.000Z', msg: 'slow', ms: 5 }
    expect(readableLine(JSON.stringify(line), true)).toBe(
      '\x1b[90m10:00:00.000\x1b[39m \x1b[33mWARN \x1b[39m slow \x1b[90mms=\x1b[39m5\n',
    )
    expect(readableLine(JSON.stringify({ ...line, level: 35 }), false)).toBe('10:00:00.000 35 slow ms=5\n')
  })

  test('send no control character of a value to the terminal', () => {
    const hostile = 'a\x1b]0;title\x07b\rc\x9b31md\u202ee'
    const line = {
      level: 50,
      time: '2026-11-22T10:00:00.000Z',
      msg: hostile,
      [hostile]: hostile,
      error: `x\n${hostile}`,
    }
    const text = readableLine(JSON.stringify(line), false)
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(text.split('\n')).toHaveLength(3)
  })
})

test('the banner of a start names the console, and that of the first start the first call too', () => {
  const url = 'http://127.0.0.1:4000'
  const places = {
    api: `${url}/v1`,
    console: `${url}/console`,
    reference: `${url}/docs`,
    health: `${url}/health`,
    data: './data',
  }
  const later = banner(places, 900, null)
  for (const place of Object.values(places)) expect(later).toContain(place)
  expect(later).not.toContain('curl')
  expect(banner(places, 900, url)).toContain(`sign up at ${url}/console`)
  expect(banner(places, 900, url)).toContain(`curl -s ${url}/v1/auth/developer/signup`)
})
