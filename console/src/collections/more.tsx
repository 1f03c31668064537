export { More } from '../parts/more.tsx'
