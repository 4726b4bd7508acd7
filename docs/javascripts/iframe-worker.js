// A page that was opened as a file may not start a worker, which searching needs. This runs the worker's script in a
// hidden frame instead, and passes messages both ways.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.IFrameWorker = window.IFrameWorker
      inside.importScripts = () => {}
      inside.postMessage = (data) => this.receive(data)
      const script = inside.document.createElement("script")
      script.src = new URL(address, location.href).href
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach((data) => this.postMessage(data))
      }
      inside.document.body.append(script)
    }

    receive(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
