/** Every folder of `console/src` with an `area.ts`, collected by the build (`server/console/bundle.ts`). */
declare module 'console:areas' {
  export const areas: readonly import('./areas.ts').Area[]
}
