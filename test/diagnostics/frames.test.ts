import { expect, test } from 'vitest'
import { framesOf, namesOfBundle } from '#server/diagnostics/frames.ts'

const place = (stack: string) =>
  framesOf(stack).map(({ function: name, file, line, column }) => [name, file, line, column])

test('frames of Chrome and Node', () => {
  expect(
    place(`TypeError: at 10:20:30 x is not a function
    at Cart.total [as sum] (https://app.example/assets/main.js?v=3:1:85)
    at async open (webpack-internal:///./src/a.js:4:9)
    at new Cart (file:///srv/app/main.js:2:3)
    at async Promise.all (index 0)
    at https://app.example/main.js:1:2
    at async https://app.example/main.js:1:4
    at Array.map (<anonymous>)
    at eval (eval at run (https://app.example/main.js:1:2), <anonymous>:1:1)
    at C:\\app\\dist\\main.js:7:8
    at native`),
  ).toEqual([
    ['Cart.total [as sum]', 'assets/main.js', 1, 85],
    ['open', 'src/a.js', 4, 9],
    ['new Cart', 'srv/app/main.js', 2, 3],
    ['Promise.all', null, null, null],
    [null, 'main.js', 1, 2],
    [null, 'main.js', 1, 4],
    ['Array.map', null, null, null],
    ['eval', null, null, null],
    [null, 'app/dist/main.js', 7, 8],
    ['native', null, null, null],
  ])
})

test('frames of Firefox and Safari', () => {
  expect(
    place(`total/<@https://app.example/(shop)/main.js:1:85
@https://app.example/npm/react@18/index.js:2:3
async*open@https://app.example/main.js:4:5
setTimeout handler*later@https://app.example/main.js:6:7
run@https://app.example/main.js line 3 > eval:1:1
map@[native code]
global code@https://app.example/main.js:8:9
https://app.example/npm/react@18/index.js:10:11
no frame at all: 1:2`),
  ).toEqual([
    ['total/<', '(shop)/main.js', 1, 85],
    [null, 'npm/react@18/index.js', 2, 3],
    ['open', 'main.js', 4, 5],
    ['later', 'main.js', 6, 7],
    ['run', null, null, null],
    ['map', null, null, null],
    ['global code', 'main.js', 8, 9],
    [null, 'npm/react@18/index.js', 10, 11],
  ])
})

test('frames of Hermes, whose addresses count from 0, and of JavaScriptCore in React Native', () => {
  expect(
    place(`Error: x
    at total (address at index.android.bundle:1:84)
    at open (address at /data/app/main.jsbundle:1:0)
    at forEach (native)
    at dev (http://10.0.2.2:8081/index.bundle?platform=android:12:7)
total@main.jsbundle:1:85
close@file:///var/containers/App.app/main.jsbundle:1:9`),
  ).toEqual([
    ['total', 'index.android.bundle', 1, 85],
    ['open', 'data/app/main.jsbundle', 1, 1],
    ['forEach', null, null, null],
    ['dev', 'index.bundle', 12, 7],
    ['total', 'main.jsbundle', 1, 85],
    ['close', 'var/containers/App.app/main.jsbundle', 1, 9],
  ])
})

test('at most a hundred frames, in time whatever they are', () => {
  const before = performance.now()
  expect(framesOf('at a (b.js:1:2)\n'.repeat(2000))).toHaveLength(100)
  for (const unit of ['at ', ':1', '@', 'at (', '(', '/..', ':1:2)', '*', ' '])
    expect(framesOf(unit.repeat(33_000 / unit.length)).length).toBeLessThanOrEqual(100)
  expect(performance.now() - before).toBeLessThan(500)
})

test('a bundle is known by its path or the end of it', () => {
  expect(namesOfBundle('shop/assets/main%20a.js')).toEqual(['shop/assets/main a.js', 'assets/main a.js', 'main a.js'])
  expect(namesOfBundle('%zz/a.js')).toEqual(['%zz/a.js', 'a.js'])
  expect(namesOfBundle(`${'a/'.repeat(20)}b.js`)).toHaveLength(8)
})
