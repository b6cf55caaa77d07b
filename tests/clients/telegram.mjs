// A person with a phone, on an emulator of Telegram's Bot API (npm telegram-test-api).
//
//   node telegram.mjs FOLDER PORT TOKEN CHAT
//
// Prints a line of JSON for each message of the bot. A line on stdin, "CHAT NUMBER", presses that button of the last
// message in that chat; "down" and "up" end the emulator and start it again. Ends with its input.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [folder, port, token, chat] = process.argv.slice(2);
const TelegramServer = createRequire(`${folder}/package.json`)('telegram-test-api');
const make = () => new TelegramServer({ port: Number(port), host: '127.0.0.1', storeTimeout: 600 });
let server = make();
let last = null;

function listen() {
  server.on('AddedBotMessage', () => {
    const { message } = server.storage.botMessages.at(-1);
    last = message;
    console.log(JSON.stringify(message));
  });
}

listen();
await server.start();
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'down') {
    await server.stop();
  } else if (line === 'up') {
    server = make();
    listen();
    await server.start();
  } else {
    const [where, number] = line.split(' ');
    const client = server.getClient(token, { chatId: Number(where), userId: Number(chat) });
    const data = last.reply_markup.inline_keyboard[0][Number(number)].callback_data;
    await client.sendCallback(client.makeCallbackQuery(data));
  }
}
await server.stop();
