/** Images for models: read from files, and made smaller where they are large. */

/** More than this is drawn smaller: vendors do the same before a model sees it. */
const BYTES_MAX = 900_000;
const SIDE_MAX = 1_568;
const TAKEN = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export interface Picture {
  name: string;
  type: string;
  /** Base64. */
  data: string;
}

export const address = (picture: { type: string; data: string }): string => `data:${picture.type};base64,${picture.data}`;

/** The size that an image is drawn in, with the same shape. Pure. */
export function fit(width: number, height: number): [number, number] {
  const scale = Math.min(1, SIDE_MAX / Math.max(width, height, 1));
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

/** Fails if the file is no image that this browser can read. */
export async function read(file: File): Promise<Picture> {
  const whole = TAKEN.includes(file.type) && file.size <= BYTES_MAX;
  const url = whole ? await asUrl(file) : await smaller(file);
  const type = /^data:([^;,]*)/.exec(url)?.[1] ?? file.type;
  return { name: file.name, type, data: url.slice(url.indexOf(',') + 1) };
}

function asUrl(file: File): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

async function smaller(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = fit(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  // JPEG knows no transparency; what is clear would be black.
  if (context) context.fillStyle = '#fff';
  context?.fillRect(0, 0, canvas.width, canvas.height);
  context?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL('image/jpeg', 0.85);
}
