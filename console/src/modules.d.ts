/** Every folder of `console/src` with an `area.ts`, collected by the build (`server/console/bundle.ts`). */
declare module 'console:areas' {
  export const areas: readonly import('./areas.ts').Area[]
}

/** What forms need of the OpenAPI document, in parts (`server/console/forms.ts`). */
declare module 'console:forms' {
  export const forms: Readonly<
    Record<string, () => Promise<{ readonly document: import('./parts/form/schema.ts').Document }>>
  >
}
