import { expect, test } from 'vitest'
import { entryOf, redirectTo, withAnswer } from '#server/oauth/redirects.ts'

const good: readonly (readonly [given: string, stored: string])[] = [
  ['https://app.example.com', 'https://app.example.com/'],
  ['https://APP.example.com:443/a?b=c', 'https://app.example.com/a?b=c'],
  ['https://app.example.com/*', 'https://app.example.com/*'],
  ['https://app.example.com/deep/*', 'https://app.example.com/deep/*'],
  ['http://localhost:3000/back', 'http://localhost:3000/back'],
  ['http://127.0.0.1:3000/*', 'http://127.0.0.1:3000/*'],
  ['http://[::1]:3000/', 'http://[::1]:3000/'],
  ['com.example.app://signed-in', 'com.example.app://signed-in'],
  ['com.example.app:/signed-in', 'com.example.app:/signed-in'],
  ['exp://127.0.0.1:8081/--/*', 'exp://127.0.0.1:8081/--/*'],
]
test.each(good)('%s may be listed', (given, stored) => {
  expect(entryOf(given)).toEqual({ entry: stored })
})

test.each([
  '',
  'app.example.com',
  '/signed-in',
  'http://app.example.com/',
  'http://localhost.example.com/',
  'https://*',
  'https://*/',
  'https://*.example.com/',
  'https://*.example.com/*',
  'https://app.example.*/',
  'https://app.example.com*',
  'https://app.example.com:*/',
  'https://app.example.com/a*',
  'https://app.example.com/*/a',
  'https://app.example.com/**',
  'https://app.example.com/?next=/*',
  'com.example.app:*',
  'com.example.app://*',
  'com.example.app:/*',
  '*',
  'https://user@app.example.com/',
  'https://user:word@app.example.com/',
  'https://app.example.com/#fragment',
  'https://app.example.com/a b',
  'https://app.example.com\\a',
  'https://äpp.example.com/',
  'https://app.example.com/\u0000',
  'javascript:alert(1)//*',
  'JavaScript:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  'intent://x/#Intent;end',
  `https://app.example.com/${'x'.repeat(500)}`,
])('%s may not', (given) => {
  expect(entryOf(given)).toHaveProperty('problem')
})

const list = ['https://app.example.com/deep/*', 'https://app.example.com/back?a=b', 'com.example.app://signed-in']

test('an address is allowed whole, or below a path', () => {
  for (const asked of [
    'https://app.example.com/deep/',
    'https://app.example.com/deep/a/b?c=d',
    'https://app.example.com:443/deep/a',
    'https://app.example.com/back?a=b',
    'com.example.app://signed-in',
  ])
    expect(redirectTo(list, asked)).toBe(new URL(asked).href)
  for (const asked of [
    'https://app.example.com/deep',
    'https://app.example.com/deeper/a',
    'https://app.example.com/back',
    'https://app.example.com/back?a=b&c=d',
    'https://app.example.com/deep/../back',
    'https://app.example.com/deep/%2e%2e/back',
    'https://app.example.com/deep/%2E%2E%2Fback',
    'https://app.example.com/deep/a%5c..%5cb',
    'https://app.example.com/deep/..;/back',
    'https://app.example.com/deep/..%3b/back',
    'https://app.example.com/deep/..;a=b/back',
    'https://app.example.com/deep/%252e%252e/back',
    'https://app.example.com/deep/%25252e%25252E%25252Fback',
    'https://app.example.com:8443/deep/a',
    'https://app.example.com@evil.example/deep/a',
    'https://app.example.com.evil.example/deep/a',
    'https://app.example.com\\@evil.example/deep/a',
    'https://app.example.com%5c@evil.example/deep/a',
    'https://app.example.com:443@evil.example/deep/a',
    'https://app\u3002example.com/deep/a',
    'https://app.ex\u0430mple.com/deep/a',
    'https://app.example.com./deep/a',
    '//app.example.com/deep/a',
    'https:app.evil.example/deep/a',
    'https:///evil.example/deep/a',
    ' https://app.example.com/deep/a',
    'https://app.example.com/deep/\t../back',
    'https://evil.example/?https://app.example.com/deep/a',
    'https://app.example.com/deep/a#fragment',
    'http://app.example.com/deep/a',
    'com.example.app://signed-in/',
    'com.example.app://signed-in?a=b',
    'com.example.app://signed-in-elsewhere',
    `https://app.example.com/deep/${'x'.repeat(2000)}`,
  ])
    expect(redirectTo(list, asked), asked).toBeNull()
})

test('without one the first whole address is meant', () => {
  expect(redirectTo(list, undefined)).toBe('https://app.example.com/back?a=b')
  expect(redirectTo(list, '')).toBe('https://app.example.com/back?a=b')
  expect(redirectTo(['https://app.example.com/*'], undefined)).toBeNull()
  expect(redirectTo([], undefined)).toBeNull()
})

test('an answer stands in the query, in place of what the app wrote under its names', () => {
  expect(withAnswer('https://a.example/x?code=1&y=2', { code: '3' })).toBe('https://a.example/x?code=3&y=2')
  expect(withAnswer('com.example.app:/x', { error: 'a b', error_code: 'c' })).toBe(
    'com.example.app:/x?error=a+b&error_code=c',
  )
})
