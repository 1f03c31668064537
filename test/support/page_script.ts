import { createContext, runInContext } from 'node:vm'

/** What a script of ours uses of a page, with the one rule of forms that matters: what is disabled is not in the data (HTML, 4.10.22.4). */
type Element = {
  name: string
  value: string
  hidden: boolean
  disabled: boolean
  textContent: string
  readonly children: Element[]
  readonly listeners: ((event: object) => Promise<void>)[]
}

const attribute = (tag: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? ''
const element = (tag = ''): Element => ({
  name: attribute(tag, 'name'),
  value: attribute(tag, 'value'),
  hidden: / hidden[ >]/.test(tag),
  disabled: false,
  textContent: '',
  children: [],
  listeners: [],
})

export type Page = {
  /** The texts of the page's elements with an id, and of its status. */
  text(selector: string): string
  isHidden(form: number): boolean
  fill(form: number, values: Readonly<Record<string, string>>): void
  /** Presses a button by its text, and waits for what the script does then. */
  press(form: number, button: string): Promise<void>
}

/** A page of the server whose script runs without a browser. */
export const openPage = async (url: string): Promise<Page> => {
  const html = await (await fetch(url)).text()
  const forms = [...html.matchAll(/<form[^>]*>.*?<\/form>/gs)].map(([text]) => {
    const made = Object.assign(element(/^<form[^>]*>/.exec(text)?.[0]), { buttons: new Map<string, Element>() })
    for (const [tag] of text.matchAll(/<input[^>]*>/g)) made.children.push(element(tag))
    for (const [, tag, label = ''] of text.matchAll(/(<button[^>]*>)([^<]*)/g)) made.buttons.set(label, element(tag))
    return made
  })
  const others = new Map<string, Element>()
  const other = (selector: string) => {
    const known = others.get(selector) ?? element()
    others.set(selector, known)
    return known
  }
  class FormData {
    readonly pairs: [string, string][]
    constructor(form: { element: Element }, submitter?: Element) {
      const sent = [...form.element.children, ...(submitter ? [submitter] : [])].filter(({ disabled }) => !disabled)
      this.pairs = sent.map(({ name, value }) => [name, value])
    }
    [Symbol.iterator]() {
      return this.pairs[Symbol.iterator]()
    }
  }
  const formOf = (one: (typeof forms)[number]) => ({
    element: one,
    get hidden() {
      return one.hidden
    },
    set hidden(value: boolean) {
      one.hidden = value
    },
    addEventListener: (_: string, listener: Element['listeners'][number]) => one.listeners.push(listener),
    querySelectorAll: () => [...one.buttons.values()],
  })
  const document = {
    querySelectorAll: () => forms.map(formOf),
    querySelector: (selector: string) => other(selector),
  }
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(html) ?? []
  const request = (path: string, init: RequestInit) => fetch(new URL(path, url), init)
  runInContext(script, createContext({ document, FormData, fetch: request }))
  return {
    text: (selector) => other(selector).textContent,
    isHidden: (form) => forms[form]?.hidden ?? true,
    fill(form, values) {
      for (const one of forms[form]?.children ?? []) one.value = values[one.name] ?? one.value
    },
    async press(form, label) {
      const submitter = forms[form]?.buttons.get(label)
      if (!submitter) throw new Error(`There is no button "${label}".`)
      const event = { submitter, preventDefault: () => undefined }
      await Promise.all((forms[form]?.listeners ?? []).map((listener) => listener(event)))
    },
  }
}
